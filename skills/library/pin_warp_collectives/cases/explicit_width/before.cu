using Reduce = cub::WarpReduce<float, 16>;
using Block = cub::BlockReduce<float, 128>;
