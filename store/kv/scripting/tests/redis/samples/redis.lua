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
