"""Programs as people write them, many small ones in one process each: nothing of PyTorch's Python side may notice that there is no GPU."""

import pytest

pytest.importorskip("torch")


def good(ran):
    assert ran.status == 0, ran.err
    return ran


def test_a_tensor_can_be_looked_at_in_every_way(dry_run):
    ran = good(
        dry_run("""
        import numpy, torch
        x = torch.arange(6., device="cuda").view(2, 3)
        print(x, f"{x.sum():.2f}", [x.sum()], "%.1f" % x.sum())
        print(torch.nn.Parameter(x), torch.randn(500, 500, device="cuda"), torch.empty(0, device="cuda"))
        assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and len(x) == 2 and 3.0 in x and [r.shape for r in x] == [(3,), (3,)]
        assert torch.allclose(x, x.clone()) and not torch.allclose(x, x + 1)
        assert torch.allclose(torch.randn(5000, device="cuda"), torch.randn(5000, device="cuda"))
        assert x[[0, 1]].shape == (2, 3) and x[:, [0, 2]].shape == (2, 2) and x[numpy.array([1])].tolist() == [[3, 4, 5]]
        x[[0]] = 7
        assert x[0].tolist() == [7, 7, 7] and numpy.asarray(x.cpu()).shape == (2, 3)
    """)
    )
    assert "tensor([[0., 1., 2.],\n        [3., 4., 5.]], device='cuda:0') 15.00" in ran.out


def test_tensors_are_made_on_the_default_device_and_by_the_old_types(dry_run):
    good(
        dry_run("""
        import torch
        with torch.device("cuda"):
            assert torch.tensor([1]).is_cuda and torch.ones(2).is_cuda and torch.nn.Linear(2, 2).weight.is_cuda
        assert not torch.tensor([1]).is_cuda
        torch.set_default_device("cuda")
        assert torch.tensor(2.0).is_cuda and getattr(torch, "get_default_device", lambda: torch.empty(0).device)().type == "cuda" and torch.as_tensor([1]).is_cuda
        torch.set_default_device(None)
        Tensor = torch.cuda.FloatTensor
        x = Tensor(2, 3)
        assert isinstance(x, Tensor) and x.shape == (2, 3) and Tensor([1, 2]).tolist() == [1, 2] and not isinstance(torch.ones(1), Tensor)
        assert torch.ones(2).type(Tensor).is_cuda and x.type("torch.cuda.HalfTensor").dtype is torch.float16 and x.type() == "torch.cuda.FloatTensor"
    """)
    )


def test_copies_and_checkpoints_keep_shapes_devices_and_sharing(dry_run, tmp_path):
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8))
    torch.save(model.state_dict(), tmp_path / "real.pt")
    good(
        dry_run("""
        import copy, io, os, pickle, torch
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8)).cuda()
        twin = copy.deepcopy(model)
        assert twin[1].running_mean.is_cuda and twin[1].running_mean.data_ptr() != model[1].running_mean.data_ptr()
        x = torch.arange(6, device="cuda")
        y = copy.deepcopy({"a": x, "b": x[:2]})
        y["a"][0] = 9
        assert y["b"][0] == 9 and x[0] == 0
        before = torch.cuda.memory_allocated()
        del twin, y
        assert torch.cuda.memory_allocated() < before
        for place in ("cuda", torch.device("cuda:0"), lambda storage, _: storage.cuda(), {"cpu": "cuda:0"}):
            model.load_state_dict(torch.load("real.pt", map_location=place))
            assert torch.load("real.pt", map_location=place)["0.weight"].is_cuda
        assert not torch.load("real.pt", map_location="cpu")["0.weight"].is_cuda
        torch.save({"model": model.state_dict(), "epoch": 3, "x": torch.tensor([4])}, "best.pt")
        assert not os.path.exists("best.pt")
        best = torch.load("best.pt", map_location="cpu")
        assert best["epoch"] == 3 and best["x"].tolist() == [4] and best["model"]["0.weight"].shape == (8, 4) and not best["model"]["0.weight"].is_cuda
        assert torch.load("best.pt")["model"]["0.weight"].is_cuda
        model.load_state_dict(best["model"])
        buffer = io.BytesIO()
        torch.save(model, buffer)
        buffer.seek(0)
        assert torch.load(buffer, weights_only=False)(torch.randn(3, 4, device="cuda")).shape == (3, 8)
        assert pickle.loads(pickle.dumps(x)).is_cuda
    """)
    )


def test_functional_transforms_and_double_backward_run(dry_run):
    good(
        dry_run("""
        import torch
        from torch.func import functional_call, grad, hessian, jacfwd, jvp, stack_module_state, vmap
        x, w = torch.randn(8, 5, device="cuda"), torch.randn(5, device="cuda")
        assert grad(lambda w: (x @ w).sin().sum())(w).shape == (5,)
        model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 1)).cuda()
        weights = {k: v.detach() for k, v in model.named_parameters()}
        each = vmap(grad(lambda p, s: functional_call(model, p, (s[None],)).sum()), in_dims=(None, 0))(weights, x)
        assert each["0.weight"].shape == (8, 7, 5)
        params, buffers = stack_module_state([torch.nn.Linear(5, 3).cuda() for _ in range(4)])
        skeleton = torch.nn.Linear(5, 3, device="meta")
        assert vmap(lambda p, b: functional_call(skeleton, (p, b), (x,)))(params, buffers).shape == (4, 8, 3)
        assert jvp(torch.sin, (w,), (w,))[1].shape == (5,) and jacfwd(torch.exp)(w).shape == hessian(lambda t: (t ** 3).sum())(w).shape == (5, 5)
        conv = torch.nn.Conv2d(3, 4, 3).cuda()
        image = torch.randn(2, 3, 8, 8, device="cuda", requires_grad=True)
        g, = torch.autograd.grad(conv(image).relu().sum(), image, create_graph=True)
        g.norm().backward()
        assert conv.weight.grad.shape == conv.weight.shape
    """)
    )


def test_operations_without_a_meta_kernel_are_answered(dry_run):
    good(
        dry_run("""
        import torch, torch.nn as nn, torch.nn.functional as F
        model = nn.Linear(4, 4).cuda()
        try:
            optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, fused=True)
        except TypeError:  # before 2.4
            optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        model(torch.randn(2, 4, device="cuda")).sum().backward()
        optimizer.step()
        nn.GRUCell(8, 16).cuda()(torch.randn(4, 8, device="cuda")).sum().backward()
        assert torch.distributions.Beta(torch.ones(3, device="cuda"), torch.ones(3, device="cuda")).sample((2,)).shape == (2, 3)
        assert torch.linalg.lstsq(torch.randn(8, 3, device="cuda"), torch.randn(8, 2, device="cuda")).solution.shape == (3, 2)
        logits = torch.randn(20, 4, 6, device="cuda", requires_grad=True)
        for place in ("cpu", "cuda"):
            F.ctc_loss(logits.log_softmax(2), torch.randint(1, 6, (4, 5), device="cuda"), torch.full((4,), 20, device=place), torch.full((4,), 5, device=place)).backward()
        F.multi_margin_loss(logits[0], torch.zeros(4, dtype=torch.int64, device="cuda")).backward()
        encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2).cuda().eval()
        with torch.no_grad():
            assert encoder(torch.randn(2, 6, 32, device="cuda"), src_key_padding_mask=torch.zeros(2, 6, dtype=torch.bool, device="cuda")).shape == (2, 6, 32)
        assert nn.DataParallel(model)(torch.randn(2, 4, device="cuda")).shape == (2, 4)
        scripted = torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.ReLU()).cuda())
        scripted(torch.randn(2, 4, device="cuda")).sum().backward()
        torch.cuda.nvtx.range_push("step")
        torch.cuda.nvtx.range_pop()
        torch.compiler.reset()
    """)
    )


@pytest.mark.parametrize(
    "program, words",
    [
        (
            "torch.quantize_per_tensor(torch.ones(4, device='cuda'), 0.1, 0, torch.qint8)",
            "tensors of PyTorch's quantized types (qint8 and its kin) on the GPU are not known to a dry run",
        ),
        (
            "torch.randn(64, 64, device='cuda').to_sparse_bsr(16)",
            "sparse tensors",
        ),
        (
            "torch.randn(64, 64, device='cuda').to_sparse().index_add(0, torch.tensor([0], device='cuda'), torch.ones(1, 64, device='cuda'))",
            "aten::index_add on sparse tensors on the GPU is not known to a dry run",
        ),
        (
            "torch.distributed.init_process_group('mpi')",
            "the backend mpi of torch.distributed is not known to a dry run",
        ),
    ],
)
def test_what_cannot_be_planned_is_said_in_a_sentence(dry_run, program, words):
    ran = dry_run("import torch\n" + program)
    assert ran.status == 1 and words in ran.err and ran.summary["exception"]["type"] == "Unplannable"
