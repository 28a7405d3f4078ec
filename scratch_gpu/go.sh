export CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1 CUDA_COREDUMP_GENERATION_FLAGS=skip_nonrelocated_elf_images,skip_global_memory,skip_shared_memory,skip_local_memory,skip_constbank_memory
cd /tmp; nvcc -g -lineinfo -arch=native -o late $W/scratch_gpu/late.cu; nvcc -g -lineinfo -arch=native -o faults $W/scripts/device/faults.cu
for i in 1 2 3; do CUDA_COREDUMP_FILE=/tmp/c1_$i ./late; echo "status $?"; ls -la /tmp/c1_$i; done
echo BLOCKING; for i in 1 2; do CUDA_LAUNCH_BLOCKING=1 CUDA_COREDUMP_FILE=/tmp/c2_$i ./late; echo "status $?"; ls -la /tmp/c2_$i; done
unset CUDA_ENABLE_COREDUMP_ON_EXCEPTION CUDA_COREDUMP_GENERATION_FLAGS
$W/build/faultline run --core-dump -o /tmp/r1 -- ./faults trap; echo "status $?"; ls -la /tmp/r1; cp /tmp/r1/core-* $OUT/trap.core; xz -k -T0 -3 $OUT/trap.core; ls -la $OUT; $W/build/faultline explain /tmp/r1/core-* | head -40
cp /tmp/r1/process-* $OUT/ 2>/dev/null
for k in illegal shared; do $W/build/faultline run --core-dump -o /tmp/r2$k -- ./faults $k; echo "status $?"; ls -la /tmp/r2$k; done
