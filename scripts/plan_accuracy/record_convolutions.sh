#!/bin/sh
# Records the programs that measure the interval of convolutions' workspaces, on the GPU of this machine: their peaks, and operation by operation, and random convolutions
# in the usual mode and with cudnn.benchmark. Everything goes into OUT/convolutions.tar.   record_convolutions.sh OUT
[ -n "$1" ] || { echo "usage: record_convolutions.sh OUT" >&2; exit 2; }
mkdir -p "$1" && out=$(cd "$1" && pwd) && cd "$(dirname "$0")" || exit 1
work=$(mktemp -d)
python=${PYTHON:-python3}
export LIMIT=${LIMIT:-40}
programs="unet_double_conv unet_bilinear_amp unet_valid vgg_benchmark densenet efficientnet_like resnext resnet18_small unet3d dcgan edsr fpn_detector audio_demucs deeplab pix2pix yolo_inference resnet50_benchmark"
detectors="tv_mask_rcnn tv_mask_rcnn_inference tv_faster_rcnn tv_retinanet"
sh record_all.sh "$work/peaks" $programs $detectors
mkdir -p "$work/ops"
for name in $programs; do
  timeout -k 5 "$LIMIT" "$python" record.py "programs/$name.py" "$work/ops/$name.json.gz" --ops >"$work/ops/$name.txt" 2>&1 && rm -f "$work/ops/$name.txt"
done
for seed in 101 102; do
  SEED=$seed SECONDS=25 KIND=conv timeout -k 5 60 "$python" record.py random_cases.py "$work/ops/random_$seed.json.gz" --ops >/dev/null 2>&1
  CUDNN_BENCHMARK=1 SEED=$seed SECONDS=25 KIND=conv timeout -k 5 60 "$python" record.py random_cases.py "$work/ops/benchmark_$seed.json.gz" --ops >/dev/null 2>&1
done
tar -C "$work" -cf "$out/convolutions.tar" peaks
for part in ops; do tar -C "$work" -cf - "$part" | split -b 15m - "$out/$part.tar."; done
ls -l "$out"
rm -rf "$work"
