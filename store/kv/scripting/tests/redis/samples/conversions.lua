-- SPDX-License-Identifier: Apache-2.0 OR MIT
--
return x
--
return math.random()*1000000
--
return {math.random(10),math.random(1,100),math.random(100)}
--
return string.rep()
--
return ("x"):rep({})
--
return {err="a b",source="foo",line=3}
--
return {err="-a\r\nb\r\n"}
--
return {err=""}
--
return __redis__err__handler("x")
--
return tostring(newproxy)
--
return {map={a=1}}
--
return {double=1.5}
--
return {double=3}
--
return {double="x"}
--
return {set={a=true}}
--
return {big_number="123"}
--
return {verbatim_string={format="txt",string="abc"}}
--
return {1.9,-1.9,"a",nil,3}
--
return 1e100
--
return 0/0
--
return -1e100
--
return function() end
--
return {function() end}
--
return true,2
--
return {math.random()==math.random(), math.random(0)}
--
return math.randomseed("x")
--
return math.random(5,1)
--
return math.random(1,2,3)
--
return string.format("%d %s %q",1,"a","b")
--
return KEYS
--
return ARGV
--
return {KEYS[1],ARGV[3],#KEYS,#ARGV}
--
return {KEYS[3]}
--
return {1,{2,{3,{}}},'x'}
--
return {[2]=5}
--
return {{},{}}
--
return ''
--
return -0
--
return 2^53
--
return 2^62
--
return 2^63
--
return {true,false,true}
--
return {nil,1}
--
return {ok=5}
--
return {err=5}
--
return {ok='fine',err='both'}
--
return {double=1/0}
--
return {double=-1/0}
--
return {double='1'}
--
return {map={}}
--
return {map={k={1,2}}}
--
return {map=5,1}
--
return {set={}}
--
return {set={[1]=true}}
--
return {set=5,1}
--
return {big_number=12}
--
return {verbatim_string={format='mkd',string='# a'}}
--
return {verbatim_string={format='m',string='a'}}
--
return {verbatim_string={format='toolong',string='a'}}
--
return {verbatim_string={string='a'}}
--
return {verbatim_string=5}
--
redis.setresp(3) return {true,false,nil}
--
redis.setresp(3) return {nil}
--
redis.call('set',KEYS[1],'v') return redis.call('get',KEYS[1])
--
return redis.call('get','{k}none')
--
redis.setresp(3) return redis.call('get','{k}none')
--
redis.setresp(3) return type(redis.call('get','{k}none'))
--
return type(redis.call('get','{k}none'))
--
redis.call('hset',KEYS[1],'f','1') redis.setresp(3) return redis.call('hgetall',KEYS[1])
--
redis.call('hset',KEYS[1],'f','1') return redis.call('hgetall',KEYS[1])
--
redis.call('hset',KEYS[1],'f','1') redis.setresp(3) return redis.call('hgetall',KEYS[1]).map.f
--
redis.call('sadd',KEYS[1],'a') redis.setresp(3) return redis.call('smembers',KEYS[1])
--
redis.call('sadd',KEYS[1],'a') redis.setresp(3) return tostring(redis.call('smembers',KEYS[1]).set.a)
--
redis.setresp(3) redis.call('zadd',KEYS[1],'1.5','m') return redis.call('zscore',KEYS[1],'m')
--
redis.setresp(3) redis.call('zadd',KEYS[1],'1.5','m') return redis.call('zscore',KEYS[1],'m').double
--
redis.call('zadd',KEYS[1],'1.5','m') return redis.call('zscore',KEYS[1],'m')
--
redis.call('rpush',KEYS[1],1,2,3) return redis.call('lrange',KEYS[1],0,-1)
--
return redis.call('incr',KEYS[1])
--
return redis.call('incr',KEYS[1])+0.5
--
local t={} t.map={a=t} return t
--
local t={} t.map={[t]=1} return t
--
local t={} t.set={[t]=1} return t
--
return redis.call('ping')
--
return redis.call('ping').ok
--
return redis.call('set',KEYS[1],1.0)
--
return redis.call('echo',3)
--
return redis.call('echo',-0.0)
--
return redis.call('echo',1e15)
--
return redis.call('echo',1e16)
--
return redis.call('echo',1e17)
--
return redis.call('echo',2^53)
--
return redis.call('echo',1e21)
--
return redis.call('echo',1/0)
--
return redis.call('echo',ARGV[3])
