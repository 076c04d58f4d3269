struct Version { int major, minor; };
int f(Version v) { return v.major * 10 + v.minor; }
