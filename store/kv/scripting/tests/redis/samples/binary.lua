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
