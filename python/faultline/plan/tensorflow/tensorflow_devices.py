"""What TensorFlow tells the program of its GPUs, and what the program sets for the pool before it begins."""

from __future__ import annotations

import os


def show_devices(session) -> None:
    """A tensor says that it is on the GPU where the plan has it there: what is placed beside it (a strategy's slots beside their variables) is there, too."""
    from tensorflow.python.framework import ops

    kind = ops.EagerTensor
    for name in ("device", "backing_device"):
        before = getattr(kind, name, None)
        if before is None or not hasattr(before, "__get__"):
            continue

        def told(tensor, before=before):
            device = before.__get__(tensor, kind)
            if session.closed or session.eager.inside or session.tensors.of(tensor) is None:
                return device
            return device.replace("device:CPU:0", "device:GPU:0")

        setattr(kind, name, property(told))


def install(session) -> None:
    import tensorflow as tf
    from tensorflow.python.eager import context
    from tensorflow.python.framework import config

    physical = context.PhysicalDevice(name="/physical_device:GPU:0", device_type="GPU")
    logical = context.LogicalDevice(name="/device:GPU:0", device_type="GPU")

    def around(name: str, answer) -> None:
        before = getattr(config, name)

        def faultline(*arguments, **named):
            return answer(before, *arguments, **named)

        setattr(config, name, faultline)
        for place in (tf.config, tf.config.experimental):
            for exported in list(vars(place)):
                if getattr(place, exported, None) is before:
                    setattr(place, exported, faultline)

    def with_gpu(device):
        def listed(before, device_type=None):
            found = before(device_type)
            if session.only_cpu and (device is logical or os.environ.get("CUDA_VISIBLE_DEVICES") == "-1"):
                return found
            return found + [device] if device_type in (None, "GPU") and device not in found else found

        return listed

    session.only_cpu = os.environ.get("CUDA_VISIBLE_DEVICES") == "-1"

    def set_visible(before, devices, device_type=None):
        if device_type in (None, "GPU"):
            session.only_cpu = physical not in (devices if isinstance(devices, (list, tuple)) else [devices])
        rest = [d for d in (devices if isinstance(devices, (list, tuple)) else [devices]) if d != physical]
        if device_type != "GPU":
            before(rest, device_type)

    around("set_visible_devices", set_visible)
    around("list_physical_devices", with_gpu(physical))
    around("list_logical_devices", with_gpu(logical))

    def set_growth(before, device, enable):
        if device == physical:
            session.chosen["TF_FORCE_GPU_ALLOW_GROWTH"] = "true" if enable else "false"
        else:
            before(device, enable)

    around("set_memory_growth", set_growth)

    def set_logical(before, device, logical_devices):
        if device != physical:
            return before(device, logical_devices)
        limit = next((d.memory_limit for d in logical_devices or () if d.memory_limit), None)
        if limit:
            session.chosen["memory_limit"] = str(limit)

    around("set_logical_device_configuration", set_logical)

    def memory_info(before, device):
        if "GPU" not in str(device).upper():
            return before(device)
        session.open()
        stats = session.device.stats()
        return {"current": stats.allocated_bytes, "peak": stats.peak_allocated_bytes}

    around("get_memory_info", memory_info)

    def reset(before, device):
        if "GPU" not in str(device).upper():
            return before(device)
        session.open()
        session.device.reset_peaks()

    around("reset_memory_stats", reset)
    tf.test.gpu_device_name = lambda: "" if session.only_cpu else "/device:GPU:0"
    tf.test.is_gpu_available = lambda *_, **__: not session.only_cpu
