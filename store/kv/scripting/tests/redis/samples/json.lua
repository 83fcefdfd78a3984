-- SPDX-License-Identifier: Apache-2.0 OR MIT
--
return cjson.encode(1/0)
--
return cjson.decode("{x")
--
return cjson.decode()
--
return cjson.encode()
--
return cjson.encode({1,2,3,{a=1},"x\n\t\"\\/\1\127",true,false,cjson.null,1.5,1e20,0.1,123456789012345678})
--
return cjson.encode({[1]=1,[5]=5})
--
return cjson.encode({[1]=1,[50]=5})
--
return cjson.encode({})
--
return cjson.encode({[1.5]=5})
--
return cjson.encode({[true]=5})
--
return cjson.encode({function() end})
--
return cjson.encode({[-1]=5,a=1,[0]=3})
--
local t={} for i=1,1001 do t={t} end return cjson.encode(t)
--
local t={} for i=1,999 do t={t} end return #cjson.encode(t)
--
return #cjson.encode({"\200\201"})
--
return cjson.decode("[1,2,{\"a\":null,\"b\":[]}]")
--
return tostring(cjson.decode("null"))
--
return cjson.decode(string.rep("[",1001)..string.rep("]",1001))
--
return cjson.decode("")
--
return cjson.decode("[1")
--
return cjson.decode("[1,]")
--
return cjson.decode("[1 2]")
--
return cjson.decode("{\"a\" 1}")
--
return cjson.decode("{\"a\":1 \"b\"}")
--
return cjson.decode("{\"a\":1,}")
--
return cjson.decode("1 2")
--
return cjson.decode("\"abc")
--
return cjson.decode("\"\\u12\"")
--
return cjson.decode("\"\\ud800x\"")
--
return cjson.decode("\"\\x\"")
--
return cjson.decode("\"\\u00e9\\ud83d\\ude00\\n\\/\"")
--
return cjson.decode("\"\n\"")
--
return tostring(cjson.decode("0x10"))
--
return tostring(cjson.decode("nan"))
--
return tostring(cjson.decode("-inf"))
--
return tostring(cjson.decode("01"))
--
return tostring(cjson.decode("-1.5e3"))
--
return tostring(cjson.decode("+1"))
--
return tostring(cjson.decode("tru"))
--
return tostring(cjson.decode("true"))
--
return tostring(cjson.decode("--1"))
--
return tostring(cjson.decode("1e"))
--
return tostring(cjson.decode("infinity"))
--
return tostring(cjson.decode("-"))
--
return tostring(cjson.decode({}))
--
return tostring(cjson.decode(1))
--
return {cjson.encode_sparse_array()}
--
return {cjson.encode_sparse_array(true,2,10)}
--
return {cjson.encode_max_depth(),cjson.decode_max_depth()}
--
return {cjson.encode_number_precision(),tostring(cjson.encode_keep_buffer()),tostring(cjson.encode_invalid_numbers()),tostring(cjson.decode_invalid_numbers())}
--
return {cjson.encode_number_precision(20)}
--
return {cjson.encode_number_precision(0)}
--
return {cjson.encode_number_precision("x")}
--
return {cjson.encode_invalid_numbers("null"),cjson.encode({1/0})}
--
return {cjson.encode_invalid_numbers("foo")}
--
return {cjson.encode_invalid_numbers(true),cjson.encode({1/0,-1/0,0/0})}
--
return {cjson.encode_invalid_numbers(false),cjson.encode_sparse_array(false,2,10)}
--
return {cjson.new and 1, cjson.decode_array_with_array_mt and 1}
--
return cjson.encode(1,2)
--
local a=cjson.new() return a.encode({1})
--
return tostring(cjson.null)
--
return cjson._VERSION
