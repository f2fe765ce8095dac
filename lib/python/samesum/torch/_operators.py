"""Which of PyTorch's operators add: by their tags where PyTorch has them, else by their names.

A name is that of an operator without "aten.", its overload, and the underscore of a form that writes in place. An
operator that is not known counts as one that adds. So does one of a later PyTorch, until it has a place here.
"""

from __future__ import annotations

import math
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

UNKNOWN = "operators that samesum does not know"
"""Family of the operators without a place here."""

_ADDING = {
    "matrix products": "mm bmm mv dot vdot addmm addmv addbmm baddbmm sspaddmm matmul matmul_backward linear "
    "linear_backward inner outer einsum tensordot chain_matmul kron bilinear _trilinear _addmm_activation _int_mm "
    "_grouped_mm _foreach_mm _scaled_mm* _scaled_addmm _scaled_grouped_mm* _weight_int*_mm* _mixed_dtypes_linear "
    "_dyn_quant_matmul* mkldnn_linear* _compute_linear_combination affine_grid_generator* cudnn_affine_grid_generator*",
    "attention": "*attention* _transformer_encoder_layer_fwd",
    "convolutions": "*convolution* *conv1d* *conv2d* *conv3d* *conv_transpose* *conv_dilated* *conv_depthwise* "
    "conv_tbc*",
    "products and cumulative operators": "prod cumprod cumprod_backward logcumsumexp _logcumsumexp trace nansum "
    "nanmean linalg__powsum _foreach_powsum trapezoid trapz cumulative_trapezoid",
    "sums by key and by place": "scatter.reduce scatter.reduce_out scatter.value_reduce scatter.value_reduce_out "
    "scatter_reduce index_reduce segment_reduce _segment_reduce_backward put _index_put_impl _unsafe_index_put "
    "_unsafe_masked_index_put_accumulate embedding_bag _embedding_bag* embedding_sparse_backward unfold_backward "
    "bincount histc histogram histogramdd _histogramdd_from*",
    "other normalisations": "*batch_norm* *group_norm* instance_norm _weight_norm* _masked_softmax*",
    "norms of other orders than 1 and 2": "linalg_vector_norm norm _foreach_norm native_norm nuclear_norm cdist "
    "_cdist* pdist _pdist* dist _euclidean_dist renorm embedding_renorm",
    "pooling and resampling": "*avg_pool* *max_pool*_backward upsample_* _upsample_* *grid_sampler* col2im "
    "reflection_pad*_backward replication_pad*_backward",
    "losses with kernels of their own": "ctc_loss _ctc_loss* _cudnn_ctc_loss miopen_ctc_loss multi_margin_loss* "
    "multilabel_margin_loss*",
    "recurrent layers": "*lstm* *gru* *_rnn*",
    "Fourier transforms": "_fft_* stft istft",
    "linear algebra": "linalg_* _linalg_* cholesky* _cholesky* geqrf ormqr orgqr triangular_solve matrix_exp _spsolve",
    "random numbers that need sums": "multinomial _sample_dirichlet",
    "gradients of learned scales": "_fake_quantize_learnable_*_backward",
    "sparse and nested tensors": "*sparse* *nested* *jagged* to_padded_tensor _coalesce hspmm smm _spdiags _to_dense "
    "_cslt_*",
    "sums over ranks": "c10d.*reduce* _c10d_functional*.*reduce* symm_mem.*reduce* symm_mem.*_input_mm",
    "operators of compilers and of quantised numbers": "prims.* quantized.* _quantized.* onednn.* mkldnn.* mkl.* "
    "mkldnn_prepacked.* prepacked.* sparse.* inductor._mm_plus_mm static_runtime.*",
}  # fmt: skip
"""Names of the operators that add and are not routed, by family: patterns, in the notation of the shell."""

_WRITING = {"writes where an index repeats": {"scatter", "index_copy", "index_put", "put"}}
"""Operators that add nothing, but on a GPU may keep any of the elements that are written to one place."""

_ADDING_NOTHING = """
    arange eye full* ones* zeros* zero empty* _empty* new_* _new_zeros* linspace logspace range scalar_tensor
    from_file fill *_window fft_*freq tril_indices triu_indices polar complex rand* bernoulli binomial cauchy
    exponential geometric log_normal normal* poisson uniform _standard_gamma* _dirichlet_grad native_dropout
    _fused_dropout _masked_scale _cudnn_init_dropout_state _fill_mem_eff_dropout_mask rrelu_with_noise* all any amax
    amin *aminmax argmax argmin max min cummax cummin _cummax_helper _cummin_helper median nanmedian mode kthvalue
    sort topk bucketize searchsorted isin *unique* allclose count_nonzero nonzero* hash_tensor *max_pool?d
    *max_pool?d_with_indices max_unpool* cat stack _stack _chunk_cat block_diag clone copy* _copy_from* _to_copy
    _lazy_clone flip roll rot90 repeat* channel_shuffle pixel_* tril triu take gather scatter index index_select
    index_copy index_fill masked_* embedding im2col constant_pad_nd reflection_pad?d replication_pad?d diag_embed
    *_scatter select_backward slice_backward diagonal_backward _unsafe_index _unsafe_masked_index unsafe_split*
    _unsafe_view _reshape_copy _pack_padded_sequence _histogramdd_bin_edges upsample_nearest1d upsample_nearest2d
    upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d resize* set
    lift lu_unpack addr _add_relu _conj_physical floor_divide __irshift__ linalg_cross elu_backward glu*
    *shrink_backward hardsigmoid_backward hardswish* hardtanh_backward leaky_relu* log_sigmoid_* softplus_backward
    _prelu_kernel* binary_cross_entropy_backward mse_loss_backward smooth_l1_loss_backward huber_loss_backward
    soft_margin_loss_backward nll_loss_backward nll_loss2d_backward batch_norm_elemt _batch_norm_no_update
    _native_batch_norm_legit_no_training _foreach_copy _foreach_zero _fused_ada* _fused_sgd _amp_* fake_quantize_*
    _fake_quantize_* _fused_moving_avg_obs_fq_helper* quantize_per_* dequantize int_repr q_* qscheme
    _make_per_*_quantized_tensor _dyn_quant_pack* _convert_weight_to* to_mkldnn _mkldnn_* is_* _is_*
    _has_same_storage_numel dense_dim sparse_dim _dimI _dimV _nnz _assert_* _functional_* _linalg_check_errors
    _local_scalar_dense _pin_memory _resize_output record_stream _fused_sdp_choice _use_cudnn_ctc_loss
    _use_miopen_ctc_loss _convert_indices_* _coalesced indices _indices _values _transform_bias_rescale_qkv
    _efficientzerotensor _test_* _foobar c10d.* _c10d_functional*.* _dtensor.* symm_mem.* inductor.* export.*
    profiler.* rngprims.* quantization.* prims.device_put prims._sink_tokens samesum.*
    _philox_* shallow_copy_data
"""

_ADDING_NOTHING_IF = {
    "accumulate": (False,), "training": (False,), "reduce": ("amax", "amin", "max", "min"),
    "ord": (math.inf, -math.inf, 0), "p": (math.inf, -math.inf, 0),
}  # fmt: skip
"""Values of arguments with which an operator adds nothing, by the name of the argument."""

_FAMILIES = {pattern: family for family, patterns in _ADDING.items() for pattern in patterns.split()}
_HARMLESS = _ADDING_NOTHING.split()


def _short(qualified: str) -> str:
    """Returns the name of an operator from one such as aten::add_."""
    namespace, _, name = qualified.partition("::")
    name = name if name.startswith("__") else name.rstrip("_")
    return name if namespace == "aten" else f"{namespace}.{name}"


@lru_cache(maxsize=None)
def name_of(operator: Any) -> str:
    return _short(operator._schema.name)


def _family_by_name(name: str, overload: str) -> str | None:
    """Returns the family of an operator that adds. A name without wildcards decides before patterns do."""
    family = _FAMILIES.get(f"{name}.{overload}") or _FAMILIES.get(name)
    if family is not None or name in _HARMLESS:
        return family
    matching = (f for p, f in _FAMILIES.items() if ("." in p) == ("." in name) and fnmatchcase(name, p))
    return next(matching, None)


def _adds_nothing(operator: Any) -> bool:
    """Whether the operator is known to add nothing: as an elementwise one, as a view, or by its name."""
    name = name_of(operator)
    plain = name.removeprefix("_foreach_").removesuffix("_copy")
    packets = [getattr(torch.ops.aten, form, None) for form in (plain, plain + "_")]
    forms = [operator, *(getattr(packet, form) for packet in packets if packet for form in packet.overloads())]
    return any(torch.Tag.pointwise in form.tags or form.is_view for form in forms) or any(
        fnmatchcase(name, pattern) for pattern in _HARMLESS
    )


@lru_cache(maxsize=None)
def family_of(operator: Any) -> str | None:
    """Returns the family of an operator that adds and is not routed, or None if it adds nothing."""
    family = _family_by_name(name_of(operator), operator._overloadname)
    return family or (None if _adds_nothing(operator) else UNKNOWN)


@lru_cache(maxsize=None)
def _deciding_arguments(operator: Any) -> list[tuple[int, Any]]:
    return [(i, a) for i, a in enumerate(operator._schema.arguments) if a.name in _ADDING_NOTHING_IF]


def is_integral(dtype: torch.dtype) -> bool:
    return not (dtype.is_floating_point or dtype.is_complex)


def _rounds(value: Any) -> bool:
    """Whether sums of the elements of an argument are rounded: floating-point numbers that are in memory."""
    if isinstance(value, (list, tuple)):
        return any(map(_rounds, value))
    return isinstance(value, Tensor) and not (is_integral(value.dtype) or value.is_meta)


def _is_harmless(operator: Any, args: Any, kwargs: Any) -> bool:
    """Whether an argument makes the operator add nothing."""
    return any(
        (args[i] if i < len(args) else kwargs.get(a.name, a.default_value)) in _ADDING_NOTHING_IF[a.name]
        for i, a in _deciding_arguments(operator)
    )


def missed_family(operator: Any, args: Any, kwargs: Any) -> str | None:
    """Returns the family of a call whose result depends on the order in which PyTorch adds, else None."""
    family = family_of(operator)
    if family is None or (family != UNKNOWN and _is_harmless(operator, args, kwargs)):
        return None
    dtype = kwargs.get("dtype")
    is_rounded = _rounds(args) or _rounds(list(kwargs.values())) or not (dtype is None or is_integral(dtype))
    return family if is_rounded else None


def names_by_family() -> dict[str, str]:
    """Returns the names of the operators of the installed PyTorch that add and are not routed, by family."""
    found = {family: {p for p in patterns.split() if "." in p and "*" in p} for family, patterns in _ADDING.items()}
    for qualified in torch._C._dispatch_get_all_op_names():
        packet, _, overload = qualified.partition(".")
        name = _short(packet)
        family = _family_by_name(name, overload)
        if family is not None and "." not in name:
            found[family].add(name)
    return {family: " ".join(sorted(names)) for family, names in (found | _WRITING).items()}
