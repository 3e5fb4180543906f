// SPDX-License-Identifier: Apache-2.0
// oneDNN's pooling as a peer; built where its header is found. It keeps its own record of the
// maxima (a byte per output, often), made here by its forward pass on the same data.
#include <omp.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "dnnl.hpp"
#include "native.h"

namespace {

using dnnl::memory;

enum Operator { kMax2d, kAvg2d };  // as in tests/problem.h
enum Type { kF32, kF16, kBf16 };   // as in tests/float_format.h

struct Peer {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  memory::desc src_md, dst_md;
  dnnl::primitive backward;
  bool has_workspace = false;
  std::vector<memory> copies;  // of its record, one per set
  memory diff_src, diff_dst;
};

struct Windows {
  memory::dims stride, kernel, dilation, left, right;
};

Windows windows_of(const bench_facts &f) {
  Windows w;
  for (int i = 0; i < 2; i++) {
    const int64_t last = (f.out[3 + i] - 1) * f.stride[i] + (f.kernel[i] - 1) * f.dilation[i] + 1;
    w.stride.push_back(f.stride[i]);
    w.kernel.push_back(f.kernel[i]);
    w.dilation.push_back(f.dilation[i] - 1);
    w.left.push_back(f.pad[i]);
    w.right.push_back(last - f.in[3 + i] - f.pad[i]);
  }
  return w;
}

// Dense NCHW or channels-last, else nothing.
memory::format_tag tag_of(const int64_t size[5], const int64_t step[5]) {
  const int64_t plane = size[3] * size[4];
  if (step[4] == 1 && step[3] == size[4] && step[1] == plane) return memory::format_tag::nchw;
  if (step[1] == 1 && step[4] == size[1] && step[3] == size[1] * size[4])
    return memory::format_tag::nhwc;
  return memory::format_tag::undef;
}

memory::desc describe(const bench_facts &f, const int64_t size[5], const int64_t step[5]) {
  const auto type = f.type == kF32   ? memory::data_type::f32
                    : f.type == kF16 ? memory::data_type::f16
                                     : memory::data_type::bf16;
  return memory::desc({size[0], size[1], size[3], size[4]}, type, tag_of(size, step));
}

#if DNNL_VERSION_MAJOR >= 3
using Forward = dnnl::pooling_forward;
using Backward = dnnl::pooling_backward;
#else
using Forward = dnnl::pooling_v2_forward;
using Backward = dnnl::pooling_v2_backward;
#endif

std::unique_ptr<Peer> make(const bench_facts &f, const void *field) {
  auto peer = std::make_unique<Peer>();
  const Windows w = windows_of(f);
  const auto algorithm = f.op == kMax2d  ? dnnl::algorithm::pooling_max
                         : f.include_pad ? dnnl::algorithm::pooling_avg_include_padding
                                         : dnnl::algorithm::pooling_avg_exclude_padding;
  const auto training = dnnl::prop_kind::forward_training;
  peer->src_md = describe(f, f.in, f.grad_in_step);
  peer->dst_md = describe(f, f.out, f.grad_out_step);
#if DNNL_VERSION_MAJOR >= 3
  const Forward::primitive_desc forward(peer->engine, training, algorithm, peer->src_md,
                                        peer->dst_md, w.stride, w.kernel, w.dilation, w.left,
                                        w.right);
  const Backward::primitive_desc backward(peer->engine, algorithm, peer->src_md, peer->dst_md,
                                          w.stride, w.kernel, w.dilation, w.left, w.right, forward);
#else
  const Forward::primitive_desc forward({training, algorithm, peer->src_md, peer->dst_md, w.stride,
                                         w.kernel, w.dilation, w.left, w.right},
                                        peer->engine);
  const Backward::primitive_desc backward(
      {algorithm, peer->src_md, peer->dst_md, w.stride, w.kernel, w.dilation, w.left, w.right},
      peer->engine, forward);
#endif
  peer->backward = Backward(backward);
  peer->diff_src = memory(peer->src_md, peer->engine, DNNL_MEMORY_NONE);
  peer->diff_dst = memory(peer->dst_md, peer->engine, DNNL_MEMORY_NONE);
  peer->has_workspace = f.op == kMax2d;
  if (!peer->has_workspace) return peer;
  memory src(peer->src_md, peer->engine, const_cast<void *>(field)),
      dst(peer->dst_md, peer->engine);
  for (int64_t i = 0; i < f.sets; i++)
    peer->copies.emplace_back(forward.workspace_desc(), peer->engine);
  Forward(forward).execute(
      peer->stream,
      {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, dst}, {DNNL_ARG_WORKSPACE, peer->copies[0]}});
  peer->stream.wait();
  for (size_t i = 1; i < peer->copies.size(); i++)
    std::memcpy(peer->copies[i].get_data_handle(), peer->copies[0].get_data_handle(),
                forward.workspace_desc().get_size());
  return peer;
}

const char *refusal(const bench_facts &f) {
  if (f.op != kMax2d && f.op != kAvg2d) return "no such operator";
  if (f.type > kBf16 || f.divisor != 0) return "no such parameter";
  // It divides by the whole window even where that reaches past the padding.
  if (f.op == kAvg2d && f.ceil && f.include_pad) return "another divisor";
  const auto in = tag_of(f.in, f.grad_in_step), out = tag_of(f.out, f.grad_out_step);
  return in == memory::format_tag::undef || in != out ? "no such layout" : nullptr;
}

}  // namespace

const char *onednn_version(void) {
  static const std::string text = [] {
    const dnnl_version_t *v = dnnl_version();
    return std::to_string(v->major) + '.' + std::to_string(v->minor) + '.' +
           std::to_string(v->patch);
  }();
  return text.c_str();
}

void *onednn_open(const struct bench_facts *facts, const void *field, int threads, char *why) {
  omp_set_num_threads(threads);
  const char *refused = refusal(*facts);
  try {
    if (refused == nullptr) return make(*facts, field).release();
    std::snprintf(why, BENCH_TEXT, "%s", refused);
  } catch (const std::exception &e) {
    std::snprintf(why, BENCH_TEXT, "%s", e.what());
  }
  return nullptr;
}

void onednn_close(void *handle) { delete static_cast<Peer *>(handle); }

double onednn_call(void *handle, int64_t set, void *diff_dst, void *diff_src, int calls) {
  Peer &peer = *static_cast<Peer *>(handle);
  peer.diff_dst.set_data_handle(diff_dst);
  peer.diff_src.set_data_handle(diff_src);
  std::unordered_map<int, memory> arguments{{DNNL_ARG_DIFF_DST, peer.diff_dst},
                                            {DNNL_ARG_DIFF_SRC, peer.diff_src}};
  if (peer.has_workspace)
    arguments.insert({DNNL_ARG_WORKSPACE, peer.copies[static_cast<size_t>(set)]});
  const double start = omp_get_wtime();
  for (int i = 0; i < calls; i++) {
    peer.backward.execute(peer.stream, arguments);
    peer.stream.wait();
  }
  return (omp_get_wtime() - start) * 1e6 / calls;
}
