-- SPDX-License-Identifier: Apache-2.0 OR MIT
--
error()
--
error(nil)
--
error(12)
--
x=1
--
rawset(_G,"x",1)
--
setmetatable(_G,{})
--
getmetatable(_G).__index=nil
--
getmetatable("").__foo=nil
--
string.foo=1
--
table.insert(_G,1)
--
syntax error
--
local a,b=loadstring(string.dump(function() end)) return b
--
local a,b=load(function() return nil end,"x") return tostring(a)..tostring(b)
--
local a,b=loadstring("x x") return b
--
local function f() return f() + 1 end return f()
--
KEYS=1 return KEYS
--
coroutine.yield(1)
--
#!lua flags=foo
return 1
--
#!lua foo=foo
return 1
--
#!foo
return 1
--
#!lua
--
error({err="a b",source="foo",line=3})
--
local t={} t[1]=t return t
--
return loadstring("xyz=1")()
--
local f=loadstring("return xyz") return f()
--
return {getmetatable(_G)==getmetatable(redis),#_G,next(redis)~=nil,rawget(_G,"x")==nil,rawget(redis,"call")~=nil}
--
local t={} for k in pairs(getmetatable(_G)) do t[#t+1]=k end return t
--
return tostring(getmetatable(redis))..tostring(getmetatable(string))..tostring(getmetatable(""))
--
setmetatable(redis,{})
--
return {rawequal(string,getmetatable("").__index)}
--
local ok,a = pcall(error,{err="foo"}) return {tostring(ok),type(a),a}
--
local ok,a = pcall(error,{1}) return {tostring(ok),type(a)}
--
local function f() return 1 end collectgarbage("count") return {collectgarbage("collect"),gcinfo()>1}
--
return 1 +
 {}
--
local function f()
 error("deep")
 end
 local ok = f()
 return 1
--
local function f()
 error("deep",2)
 end
 local ok = f()
 return 1
--
return "a" .. {}
--
local a = nil; a.b = 1
--
local a = {} ; a[nil]=1
--
local a; a()
--
foo()
--
string.foo()
--
math.randomseed(5) return {math.random(1000),math.random(-5,5)}
--
goto x
