#include "sources/pool_names.h"

#include <gtest/gtest.h>

namespace faultline {
namespace {

// A name tells the memory only where TensorFlow or JAX is known to give it.
TEST(PoolNames, TellTheMemoryAndItsLimit) {
  struct Row {
    const char* pool;
    PoolMemory memory;
    const char* variable;
  };
  for (const Row& row :
       {Row{"", PoolMemory::kGpu, ""}, Row{"GPU_0_bfc", PoolMemory::kGpu, ""},
        Row{"GPU_collectivememory_3_bfc", PoolMemory::kGpu, ""},
        Row{"PluggableDevice_0_bfc", PoolMemory::kOtherDevice, ""}, Row{"mlu_3_bfc", PoolMemory::kUnknown, ""},
        Row{"gpu_bfc", PoolMemory::kUnknown, ""}, Row{"GPU_x_bfc", PoolMemory::kUnknown, ""},
        Row{"vacc_bfc", PoolMemory::kUnknown, ""}, Row{"mklcpu", PoolMemory::kHost, "TF_MKL_ALLOC_MAX_BYTES"},
        Row{"cpu", PoolMemory::kHost, "TF_CPU_BFC_MEM_LIMIT_IN_MB"},
        Row{"bfc_cpu_allocator_for_gpu", PoolMemory::kHost, "TF_CPU_BFC_MEM_LIMIT_IN_MB"},
        Row{"gpu_host_bfc", PoolMemory::kHost, "TF_GPU_HOST_MEM_LIMIT_IN_MB"},
        Row{"cuda_host_bfc", PoolMemory::kHost, "TF_CUDA_HOST_MEM_LIMIT_IN_MB"},
        Row{"xla_gpu_host_bfc", PoolMemory::kHost, "XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB"},
        Row{"other_host_bfc", PoolMemory::kHost, ""}}) {
    EXPECT_EQ(memory_of(row.pool), row.memory) << row.pool;
    EXPECT_EQ(limit_variable_of(row.pool).name, row.variable) << row.pool;
  }
}

}  // namespace
}  // namespace faultline
