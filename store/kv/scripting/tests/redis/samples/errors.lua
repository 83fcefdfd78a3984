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
local a,b=load(function() return nil end,"x") return type(a)..type(b)
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
return type(getmetatable(redis))..type(getmetatable(string))..type(getmetatable(""))
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
--
local function f(a) return a.b.c end return f({})
--
return #nil
--
return {} < {}
--
return {} < 1
--
return 1 < "x"
--
for i=1,"x" do end
--
for i="a",2 do end
--
return setmetatable({},{__index=function() error("inner") end}).x
--
return string.format("%d","x")
--
return ("x"):bad()
--
return tostring()
--
return tonumber("z",99)
--
return select(0)
--
return unpack({},1,1e8)
--
return table.concat({{}})
--
return table.concat({1,2,3},",")
--
return table.sort({3,1,2},function() error("cmp") end)
--
local t={3,1,2} table.sort(t) return t
--
return string.rep("ab",3)
--
return string.gsub("hello","l",{l="L"})
--
return string.find("a.b",".",1,true)
--
return string.find("abc","(")
--
return string.find("abc","[")
--
return string.match("key=val","(%w+)=(%w+)")
--
return string.byte("abc",1,-1)
--
return string.char(256)
--
return {pcall(error)}
--
return {pcall(error,nil)}
--
return {pcall(error,"x",0)}
--
return {pcall(error,"x",1)}
--
return {pcall(error,"x",2)}
--
return {pcall(function() error({err="ERR a"}) end)}
--
return {pcall(function() error({}) end)}
--
return {pcall(function() local x = nil; x() end)}
--
return {pcall()}
--
return {pcall(nil)}
--
return {xpcall(function() error("a") end,function(e) return "h:"..e end)}
--
return {select("#",pcall(function() return 1,2,3 end))}
--
error("a\nb")
--
error("line\r\n")
--
error({err="ERR a\nb"})
--
error({err="no code"})
--
error({err=12})
--
error(setmetatable({},{__tostring=function() return "t" end}).x)
--
error(true)
--
error(redis.error_reply("MY code"))
--
return error
--
local co=coroutine.create(function() error("in co") end) return {coroutine.resume(co)}
--
local co=coroutine.wrap(function() error("in co") end) co()
--
local co=coroutine.wrap(function(a) local b=coroutine.yield(a+1) return b*2 end) return {co(1),co(5)}
--
return coroutine.resume(1)
--
return coroutine.status(coroutine.create(function() end))
--
return rawget(_G,"nothing")
--
return rawequal(_G,_G)
--
return _G.redis == redis
--
return _G["nothing"]
--
return _G[1]
--
_G[1]=2
--
_G.x=1
--
local e=getmetatable(_G) e.__newindex=nil
--
local e=getmetatable("") e.__index=nil
--
setmetatable(_G,nil)
--
setmetatable("",{})
--
setmetatable({},1)
--
rawset(redis,"x",1)
--
rawset(string,"x",1)
--
rawset({},nil,1)
--
table.insert(redis,1)
--
table.insert(nil,1)
--
table.insert({},1,2,3)
--
table.insert({},"x",2)
--
math.floor=1
--
cjson.encode=1
--
KEYS[1]="changed" return KEYS[1]
--
ARGV.x=5 return ARGV.x
--
redis=nil
--
string=nil
--
local string=nil return 1
--
local print=1 return print
--
print(1)
--
return io
--
return require
--
return dofile
--
return loadfile
--
return debug
--
return getfenv
--
return setfenv
--
return module
--
return package
--
return next({})
--
return next(redis)==nil
--
return next({},"x")
--
return next()
--
return type(next(_G))
--
local n=0 for k,v in pairs(redis) do n=n+1 end return n>5
--
for k,v in ipairs(redis) do end return 1
--
for k,v in ipairs({1,2}) do end return 1
--
pairs(1)
--
pairs()
--
ipairs(1)
--
return getmetatable(setmetatable({},{__metatable="m"}))
--
return setmetatable(setmetatable({},{__metatable="m"}),{})
--
return loadstring("return 1+1")()
--
return loadstring("return")()
--
return loadstring("=")
--
return {loadstring("x =", "=name")}
--
return {loadstring("x =", "@name")}
--
return {loadstring("x =", "long name "..string.rep("y",100))}
--
return {loadstring("\n\nx = = 1")}
--
local n=0 return load(function() n=n+1 if n<3 then return n end end)
--
return {load(function() return {} end)}
--
return {load(function() error("rd") end)}
--
return {load("x")}
--
local n=0 return load(function() n=n+1 if n==1 then return "return " elseif n==2 then return "7" end end)()
--
return loadstring("error('inner')","=mine")()
--
return loadstring("return ...")(5)
--
return collectgarbage("count")>0
--
return collectgarbage("bad")
--
return gcinfo()>0
--
return _VERSION
--
return tostring(1e15)..tostring(1e14)..tostring(0.1)..tostring(-0)
--
return tostring(2^53)..tostring(1/0)..tostring(-1/0)
--
return 1 .. ""
--
return "10"+5
--
return "a"+5
--
return 5%0
--
return -5%3
--
return 2^0.5>1.41
--
return #"abc"
--
return not nil
--
return string.format("%5.2f|%s|%q|%x|%c|%i",3.14159,"s","q\n",255,65,7)
--
return string.format("%s")
--
return string.format("%y",1)
--
return string.format("%q","a\0b\r\n")
--
return string.dump(print)
--
return math.max(1,5,3)
--
return math.max()
--
return math.fmod(5,3)
--
return math.huge
--
return math.pi>3
--
return math.floor(-1.5)
--
return tonumber("0x10")
--
return tonumber("10",2)
--
return tonumber("  12  ")
--
return tonumber("1e1")
--
return tonumber("")
--
return unpack({1,2,3})
--
return {unpack({1,2,3},2)}
--
return select(-1,1,2)
--
return {select(2,"a","b","c")}
--
return string.rep("x",-1)
--
return ("x"):rep(3)
--
return ("%d"):format(3.7)
--
goto=1
--
return (function(...) return select("#",...) end)(nil,nil)
--
local a <const> = 1
--
return 1//2
--
return 1&2
--
break
--
x.y.z=1
--
local t=setmetatable({},{__newindex=function(t,k,v) rawset(t,k,v*2) end}) t.a=5 return t.a
--
local t=setmetatable({},{__call=function(self,a) return a+1 end}) return t(4)
--
local t=setmetatable({},{__index={a=1}}) return t.a
--
return string.len(string.rep("a",1000))
--
for i=1,10 do if i==5 then return i end end
--
while true do break end return 1
--
repeat local x=1 until x==1 return 2
--
return {string.gsub("abc","%w","%0%0")}
--
return {string.gsub("abc","%w","%9")}
--
return string.gsub("abc","","-")
--
return string.gmatch("a b","%a+")()
--
return string.reverse("abc")..string.upper("a")..string.lower("B")
--
return table.remove({1,2,3})
--
return table.maxn({1,2,nil,4})
--
return table.getn({1,2})
--
return table.setn({},1)
--
return table.foreach({5},function(k,v) return v end)
--
return {math.frexp(8)}
--
return math.random(3,3)
--
math.randomseed(7) return {math.random(1000000),math.random(5,10)}
--
return xpcall()
--
return xpcall(type)
--
return {xpcall(1,type)}
--
return {xpcall(function() return 1,2 end,type)}
--
return {xpcall(function() error("a") end,1)}
--
return {xpcall(function() error("a") end,function() error("b") end)}
--
return {xpcall(function(...) return select("#",...) end,type,1,2)}
