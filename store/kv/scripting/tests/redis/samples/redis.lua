-- SPDX-License-Identifier: Apache-2.0 OR MIT
--
local _,x=pcall(redis.call,"foo") return x
--
local t={} local x=redis.pcall() for k,v in pairs(x) do t[#t+1]=k..":"..tostring(v) end table.sort(t) return table.concat(t," ")
--
redis.call=1
--
return redis.sha1hex()
--
return redis.error_reply("a b c")
--
return redis.error_reply("abc")
--
return redis.error_reply("-abc")
--
return redis.error_reply(1,2)
--
return redis.status_reply(1)
--
return redis.status_reply("a\r\nb")
--
return redis.log(1)
--
return redis.log(7,"x")
--
return redis.log("a","x")
--
return redis.setresp(4)
--
return redis.set_repl(4,5)
--
return redis.set_repl(77)
--
return redis.acl_check_cmd("foo")
--
return redis.acl_check_cmd("get","x")
--
return redis.acl_check_cmd()
--
return redis.register_function()
--
return tostring(redis.breakpoint())..tostring(redis.debug(1))
--
return redis.call({})
--
return redis.call("echo",1.5,{})
--
return redis.call("echo",0.1)
--
return redis.call("echo",1e300)
--
return redis.call("echo",12345678901234567890)
--
return redis.call("multi")
--
return coroutine.wrap(function() coroutine.yield(redis.call("foo")) end)()
--
#!lua flags=no-writes,allow-stale
return redis.call("set","a","b")
--
return redis.call("fcall","g","0")
--
local ok,a = pcall(redis.call,"set","a") return a
--
local ok,a = xpcall(function() redis.call("set","a") end, function(x) return x end) local t={} for k,v in pairs(a) do t[#t+1]=k..":"..tostring(v) end return t
--
local x=redis.pcall("set","a") return {x.err,x.source,x.line}
--
return redis.pcall("set","a")
--
return {1,redis.pcall("set","a"),2}
--
return redis.call("set","a","b")
--
return redis.REDIS_VERSION
--
redis.setresp(3) return redis.call("hgetall","x")
--
redis.setresp(3) return true
--
redis.setresp(3) return false
--
redis.setresp()
--
return redis.replicate_commands()
--
return {redis.breakpoint()}
--
return {redis.debug(1)}
--
return {redis.set_repl(1)}
--
return {redis.log(1,"x")}
--
return {redis.setresp(2)}
--
return redis.sha1hex(1)
--
return redis.sha1hex({})
--
local x = redis.sha1hex
--
return redis.call("set",KEYS[1],ARGV[1])
--
redis.call("set",KEYS[1],ARGV[1]) return redis.call("incr",KEYS[1])
--
redis.call("set",KEYS[1],"x") return redis.call("incr",KEYS[1])
--
redis.call("set",KEYS[1],"x") return redis.pcall("incr",KEYS[1])
--
redis.call("set",KEYS[1],"x") return redis.call("lpush",KEYS[1],1)
--
redis.call("set",KEYS[1],"x") local r=redis.pcall("lpush",KEYS[1],1) return {r.err,type(r.source)}
--
redis.call("set",KEYS[1],"x") return {pcall(redis.call,"lpush",KEYS[1],1)}
--
redis.call("set",KEYS[1],"x") local r=redis.pcall("lpush",KEYS[1],1) error(r)
--
local ok=redis.call("set",KEYS[1],"x") return ok.ok
--
local f=redis.call return f("ping")
--
return (redis.call("ping"))
--
local function f() return redis.call("nothing") end
 return f()
--
local function f()
 local x=redis.call("nothing")
 return x
 end
 return f()
--
return redis.call("get")
--
return redis.call("")
--
return redis.call(nil)
--
return redis.call(true)
--
return redis.call("get",nil)
--
return redis.pcall(true)
--
return redis.pcall({})
--
return redis.pcall("get",{})
--
return redis.error_reply("")
--
return redis.error_reply("a")
--
return redis.error_reply("A b\r\n")
--
return redis.error_reply("-A b")
--
return redis.error_reply("--A b")
--
return redis.error_reply("A  b")
--
return redis.error_reply({})
--
return redis.error_reply()
--
return redis.error_reply("MY CODE").err
--
return redis.status_reply("")
--
return redis.status_reply("fine")
--
return redis.status_reply("fine").ok
--
return redis.status_reply()
--
return redis.status_reply({})
--
return redis.sha1hex("")
--
return redis.sha1hex("abc")
--
return redis.sha1hex(nil)
--
return redis.sha1hex(true)
--
return redis.sha1hex("a","b")
--
return redis.log()
--
return redis.log(redis.LOG_WARNING)
--
return redis.log(redis.LOG_WARNING,"a",1,nil,{})
--
return redis.log(redis.LOG_DEBUG,"x")
--
return redis.log("1","x")
--
return redis.log(-1,"x")
--
return redis.log(1.5,"x")
--
return redis.log(nil,"x")
--
return redis.setresp("3")
--
return redis.setresp("x")
--
return redis.setresp(2.9)
--
return redis.setresp(1)
--
return redis.setresp(2,3)
--
return redis.set_repl()
--
return redis.set_repl("x")
--
return redis.set_repl(redis.REPL_NONE)
--
return redis.set_repl(redis.REPL_ALL)
--
return redis.set_repl(4)
--
return redis.set_repl(-1)
--
return redis.acl_check_cmd("set",KEYS[1],"x")
--
return redis.acl_check_cmd({})
--
return redis.replicate_commands("x")
--
return {redis.LOG_DEBUG,redis.LOG_VERBOSE,redis.LOG_NOTICE,redis.LOG_WARNING}
--
return {redis.REPL_NONE,redis.REPL_AOF,redis.REPL_SLAVE,redis.REPL_REPLICA,redis.REPL_ALL}
--
return redis.REDIS_VERSION_NUM
--
return redis.nothing
--
return {redis.breakpoint()}
--
return {redis.debug()}
--
return tostring(redis.breakpoint())
--
return type(redis.debug)
--
#!lua flags=no-writes,,allow-stale
return redis.call("ping")
--
#!lua  flags=allow-oom
return redis.call("ping")
--
#!lua flags=allow-cross-slot-keys,no-cluster
return redis.call("ping")
--
#!lua flags=
return redis.call("ping")
