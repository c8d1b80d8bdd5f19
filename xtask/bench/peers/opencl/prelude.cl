// The words of the CUDA sources in OpenCL C.
#define KERNEL __kernel void
#define TX ((int)get_local_id(0))
#define TY ((int)get_local_id(1))
#define TZ ((int)get_local_id(2))
#define BX ((int)get_group_id(0))
#define BY ((int)get_group_id(1))
#define BZ ((int)get_group_id(2))
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
