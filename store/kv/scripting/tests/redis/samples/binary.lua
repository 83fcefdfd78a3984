-- SPDX-License-Identifier: Apache-2.0 OR MIT
--
return bit.tobit("x")
--
return bit.tohex(255)
--
return {bit.tohex(255,4),bit.tohex(255,-4),bit.band(),1}
--
return {bit.band(0xffffffff),bit.bor(1,2,4),bit.bxor(5,3),bit.bnot(0),bit.lshift(1,31),bit.rshift(-1,28),bit.arshift(-16,2),bit.rol(1,33),bit.ror(1,1),bit.bswap(0x12345678),bit.tobit(2^40+7.5),bit.tobit(2.5),bit.tobit(3.5),bit.tobit(-0.6),bit.tobit(1e15)}
--
return struct.pack("<i4", 5)
--
return {struct.unpack("<i4>I2s", struct.pack("<i4>I2s", -5,7,"abc"))}
--
return struct.size("<i4>I2c5")
--
return struct.size("s")
--
return struct.pack("i33", 5)
--
return struct.pack("z", 5)
--
return struct.pack("c0", "abc")
--
return {struct.unpack("<I1c0", struct.pack("<I1c0",3, "abc"))}
--
return {struct.unpack("<d", struct.pack("<d",1.5))}
--
return struct.unpack("<i4","ab")
--
return struct.pack("!8bi8", 1,2)
--
return struct.pack("!3b", 1,2)
--
return struct.pack("!b!i8", 1,2)
--
return struct.pack("c5", "ab")
--
return struct.pack("c5", "abcdefg")
--
return struct.pack("bxhlLTfd", 1,2,3,4,5,1.5,2.5)
--
return {struct.unpack("c0", "abc")}
--
return {struct.unpack("s", "abc")}
--
return {struct.unpack("b", "abc",4)}
--
return {struct.unpack("b", "abc",3)}
--
return {struct.unpack("b", "abc",0)}
--
return {struct.unpack("i16", "abc",0)}
--
return struct.pack("=i4")
--
return struct.pack("c99999999999","a")
--
return cmsgpack.pack({1,2,3})
--
return cmsgpack.pack({a=1},1.5,-1,"x",true,false,nil,300,70000,2^33,-200,-40000,-2^33)
--
return cmsgpack.pack()
--
return {cmsgpack.unpack(cmsgpack.pack({1,2,{3}},"a",2.5))}
--
return cmsgpack.unpack("\255\255")
--
return cmsgpack.unpack("\193")
--
return cmsgpack.unpack("\220")
--
return cmsgpack.unpack("")
--
return cmsgpack.unpack()
--
return {cmsgpack.unpack_one("\1\2\3")}
--
return {cmsgpack.unpack_one("\1\2\3",1)}
--
return {cmsgpack.unpack_limit("\1\2\3",2)}
--
return {cmsgpack.unpack_limit("\1\2\3",2,1)}
--
return {cmsgpack.unpack_limit("\1\2\3",0,1)}
--
return {cmsgpack.unpack_one("\1\2\3",7)}
--
return {cmsgpack.unpack_one("\1\2\3",-7)}
--
return {cmsgpack.unpack_limit("\1\2\3",-2,1)}
--
local t={} for i=1,20 do t={t} end return cmsgpack.pack(t)
--
return cmsgpack.pack(function() end)
--
return cmsgpack.pack({[1]=1,[3]=3})
--
return cmsgpack.pack({[1.5]=1})
--
return cmsgpack.pack({x={}})
--
return cmsgpack.pack(0/0,1/0,1e300,0.1,0.5,2^63,2^64,-2^63)
--
return cmsgpack.pack({["1"]=5})
--
return cmsgpack.pack({[1]=1,[2]=2,x=3})
--
return cmsgpack.pack(127,128,255,256,65535,65536,4294967295,4294967296)
--
return cmsgpack.pack(-1,-32,-33,-128,-129,-32768,-32769,-2147483648,-2147483649)
--
return cmsgpack.pack(string.rep('a',31),string.rep('b',32),string.rep('c',255),string.rep('d',256))
--
local t={} for i=1,16 do t[i]=i end return cmsgpack.pack(t)
--
local t={} for i=1,15 do t['k'..i]=i end return cmsgpack.pack(t)
--
local t={} for i=1,40 do t['k'..i]=i end return cmsgpack.pack(t)
--
return cmsgpack.pack(1.25,-1.25,3.14,1e-310)
--
return cmsgpack.pack(9007199254740993,-9007199254740993)
--
return cmsgpack.pack(cjson.null,nil)
--
return {cmsgpack.unpack(cmsgpack.pack({a={b={1,2}}}))}
--
return cmsgpack.unpack(cmsgpack.pack({a={b={1,2}}})).a.b[2]
--
return {cmsgpack.unpack("\204\255\205\1\2\206\1\2\3\4\207\0\0\0\1\0\0\0\0\208\128\209\128\0\210\128\0\0\0")}
--
return {cmsgpack.unpack("\211\255\255\255\255\255\255\255\0")}
--
return {tostring((cmsgpack.unpack("\202\63\128\0\0"))),tostring((cmsgpack.unpack("\203\63\248\0\0\0\0\0\0")))}
--
return {cmsgpack.unpack("\217\3abc\218\0\1z")}
--
return {cmsgpack.unpack("\196\2xy")}
--
return {cmsgpack.unpack("\197\0\1w")}
--
return {cmsgpack.unpack("\198\0\0\0\1w")}
--
return {cmsgpack.unpack("\219\0\0\0\1w")}
--
return {cmsgpack.unpack("\220\0\2\1\2\222\0\1\161a\5")}
--
return cmsgpack.unpack("\131\161a")
--
return cmsgpack.unpack("\199\1\1\1")
--
return cmsgpack.unpack(12)
--
return cmsgpack.unpack({})
--
return {cmsgpack.unpack_limit("\1\2\3")}
--
return cmsgpack.pack({{1},{2,{3}}})
--
return #struct.pack(">I2<I4!4xI8", 1, 2, 3)
--
return struct.pack("!4 b i4 b h", 1,2,3,4)
--
return struct.pack(">!8 b d b f", 1,2.5,3,4.5)
--
return struct.pack("s", "abc")
--
return struct.pack(">i3", -2)
--
return struct.pack("i16", -2)
--
return {struct.unpack(">i3", struct.pack(">i3", -2))}
--
return {struct.unpack("<I16", struct.pack("<I16", 258))}
--
return {struct.unpack("<i16", struct.pack("<i16", -2))}
--
return struct.pack("B", 300)
--
return struct.pack("b", -1.7)
--
return struct.pack("i4", 2^40+5)
--
return struct.pack("L", 2^63)
--
return {struct.unpack("L", string.rep("\255",8))}
--
return {struct.unpack("l", string.rep("\255",8))}
--
return {struct.unpack("bc0", "\3ab")}
--
return {struct.unpack("bxb", "\3ab")}
--
return {struct.unpack("!4bi4", "\3abc\1\2\3\4")}
--
return {struct.unpack("b", "abc", -1)}
--
return {struct.unpack("b", "abc", 10)}
--
return {struct.unpack("c2", "abc")}
--
return {struct.unpack("c9", "abc")}
--
return struct.size("!8 b l b")
--
return struct.size("c0")
--
return struct.size("q")
--
return struct.size("!bi")
--
return struct.pack()
--
return struct.pack("b")
--
return struct.pack("b","x")
--
return struct.pack("b","12")
--
return struct.unpack("b")
--
return struct.size("i0")
--
return struct.pack("i0i",1,2)
--
return struct.pack("!0b",1)
--
return struct.size("c2147483648")
--
return struct.size("c2147483647c1")
--
return bit.tobit(4294967295)
--
return bit.tobit(-4294967297)
--
return bit.tobit("12")
--
return bit.tohex(-1,2)
--
return bit.tohex(2^31,-8)
--
return bit.tohex(255,0)
--
return bit.tohex(255,100)
--
return bit.lshift(1,32)
--
return bit.lshift(1,-1)
--
return bit.rshift(-1,0)
--
return bit.arshift(-1,31)
--
return bit.band(1,"x")
--
return bit.bnot()
--
return bit.bor(1,{})
--
return bit.bxor(0xffffffff,0xffffffff)
