#pragma once
#include "lowering/attention/attention_views.h"
#include "lowering/program_file/parts.h"

// What program files keep of an attention.

namespace rlx {

template <class Way>
void list_parts(Way& way, Of<Way, PageTable>& table) {
  way("table", table.value), way("table offset", table.offset), way("table strides", table.strides), way("pages", table.pages);
  way("rows of a page", table.rows), way("page stride", table.stride);
}

template <class Way>
void list_parts(Way& way, Of<Way, StridedOperand>& operand) {
  way("operand", operand.value), way("offset", operand.offset), way("strides", operand.strides), way("page table", operand.pages);
}

template <class Way>
void list_parts(Way& way, Of<Way, RowScales>& scales) {
  way("scales", scales.operand), way("shift", scales.shift);
}

template <class Way>
void list_parts(Way& way, Of<Way, AttentionViews>& views) {
  way("node", views.node), way("result", views.result), way("batch", views.batch), way("heads", views.heads);
  way("kv heads", views.kv_heads), way("queries", views.queries), way("keys", views.keys), way("head size", views.head_size);
  way("value size", views.value_size), way("q", views.q), way("k", views.k), way("v", views.v), way("out", views.out);
  way("k scales", views.k_scales), way("v scales", views.v_scales), way("mask", views.mask), way("bias", views.bias);
  way("positions", views.positions), way("scale", views.scale), way("softcap", views.softcap), way("causal", views.causal);
  way("window", views.window), way("int16", views.int16);
}

}  // namespace rlx
