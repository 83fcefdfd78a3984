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
