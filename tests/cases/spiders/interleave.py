# 500 pairs on stdout and stderr.  Right: o0 e0 o1 e1 ... in this order, each marked with its stream.
import os

for i in range(500):
    os.write(1, b"o%d\n" % i)
    os.write(2, b"e%d\n" % i)
