#ifdef NDEBUG
int x;
#endif
