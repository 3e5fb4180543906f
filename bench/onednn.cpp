// SPDX-License-Identifier: Apache-2.0
// oneDNN's pooling as a peer; built where its header is found. Of the maxima it keeps its own
// record (a byte per output, often): its forward writes it, and for a backward it is made here by
// its forward on the same data.
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

enum Type { kF32, kF16, kBf16 };  // as in tests/float_format.h

struct Peer {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::primitive call;
  int cells_argument, outputs_argument;
  memory cells, outputs;
  std::vector<memory> records;  // of maxima, one per set; none for averages
};

struct Windows {
  memory::dims stride, kernel, dilation, left, right;
};

Windows windows_of(const bench_facts &f) {
  Windows w;
  for (int64_t i = 3 - f.spatial; i < 3; i++) {
    const int64_t last = (f.out[2 + i] - 1) * f.stride[i] + (f.kernel[i] - 1) * f.dilation[i] + 1;
    w.stride.push_back(f.stride[i]);
    w.kernel.push_back(f.kernel[i]);
    w.dilation.push_back(f.dilation[i] - 1);
    w.left.push_back(f.pad[i]);
    w.right.push_back(last - f.in[2 + i] - f.pad[i]);
  }
  return w;
}

// Dense planes or channels last, else nothing.
memory::format_tag tag_of(int64_t spatial, const int64_t size[5], const int64_t step[5]) {
  using tag = memory::format_tag;
  const int64_t plane = size[2] * size[3] * size[4], row = size[4];
  const auto dense = [&](int64_t cell) {
    return step[4] == cell && step[3] == row * cell &&
           (spatial == 2 || step[2] == size[3] * row * cell);
  };
  if (dense(1) && step[1] == plane) return spatial == 3 ? tag::ncdhw : tag::nchw;
  if (dense(size[1]) && step[1] == 1) return spatial == 3 ? tag::ndhwc : tag::nhwc;
  return tag::undef;
}

memory::desc describe(const bench_facts &f, const int64_t size[5], const int64_t step[5]) {
  const auto type = f.type == kF32   ? memory::data_type::f32
                    : f.type == kF16 ? memory::data_type::f16
                                     : memory::data_type::bf16;
  memory::dims dims{size[0], size[1]};
  dims.insert(dims.end(), size + 5 - f.spatial, size + 5);
  return memory::desc(dims, type, tag_of(f.spatial, size, step));
}

#if DNNL_VERSION_MAJOR >= 3
using Forward = dnnl::pooling_forward;
using Backward = dnnl::pooling_backward;
#else
using Forward = dnnl::pooling_v2_forward;
using Backward = dnnl::pooling_v2_backward;
#endif

dnnl::algorithm algorithm_of(const bench_facts &f) {
  return f.max           ? dnnl::algorithm::pooling_max
         : f.include_pad ? dnnl::algorithm::pooling_avg_include_padding
                         : dnnl::algorithm::pooling_avg_exclude_padding;
}

// What comes before a backward, or whose indices are asked for, is training.
Forward::primitive_desc describe_forward(const Peer &peer, const bench_facts &f,
                                         const memory::desc &src, const memory::desc &dst) {
  const Windows w = windows_of(f);
  const auto kind = !f.forward || (f.max && f.index_bytes > 0) ? dnnl::prop_kind::forward_training
                                                               : dnnl::prop_kind::forward_inference;
#if DNNL_VERSION_MAJOR >= 3
  return Forward::primitive_desc(peer.engine, kind, algorithm_of(f), src, dst, w.stride, w.kernel,
                                 w.dilation, w.left, w.right);
#else
  return Forward::primitive_desc(
      {kind, algorithm_of(f), src, dst, w.stride, w.kernel, w.dilation, w.left, w.right},
      peer.engine);
#endif
}

Backward::primitive_desc describe_backward(const Peer &peer, const bench_facts &f,
                                           const memory::desc &src, const memory::desc &dst,
                                           const Forward::primitive_desc &forward) {
  const Windows w = windows_of(f);
#if DNNL_VERSION_MAJOR >= 3
  return Backward::primitive_desc(peer.engine, algorithm_of(f), src, dst, w.stride, w.kernel,
                                  w.dilation, w.left, w.right, forward);
#else
  return Backward::primitive_desc(
      {algorithm_of(f), src, dst, w.stride, w.kernel, w.dilation, w.left, w.right}, peer.engine,
      forward);
#endif
}

// The records that a backward reads, from its own forward on the data.
void record_maxima(Peer &peer, const Forward::primitive_desc &forward, const void *field) {
  memory src(forward.src_desc(), peer.engine, const_cast<void *>(field)),
      dst(forward.dst_desc(), peer.engine);
  Forward(forward).execute(
      peer.stream,
      {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, dst}, {DNNL_ARG_WORKSPACE, peer.records[0]}});
  peer.stream.wait();
  for (size_t i = 1; i < peer.records.size(); i++)
    std::memcpy(peer.records[i].get_data_handle(), peer.records[0].get_data_handle(),
                forward.workspace_desc().get_size());
}

std::unique_ptr<Peer> make(const bench_facts &f, const void *field) {
  auto peer = std::make_unique<Peer>();
  const memory::desc src = describe(f, f.in, f.in_step), dst = describe(f, f.out, f.out_step);
  const Forward::primitive_desc forward = describe_forward(*peer, f, src, dst);
  if (f.forward)
    peer->call = Forward(forward);
  else
    peer->call = Backward(describe_backward(*peer, f, src, dst, forward));
  peer->cells_argument = f.forward ? DNNL_ARG_SRC : DNNL_ARG_DIFF_SRC;
  peer->outputs_argument = f.forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST;
  peer->cells = memory(src, peer->engine, DNNL_MEMORY_NONE);
  peer->outputs = memory(dst, peer->engine, DNNL_MEMORY_NONE);
  for (int64_t i = 0; i < f.sets && f.max && f.index_bytes > 0; i++) {
    memory record(forward.workspace_desc(), peer->engine);
    std::memset(record.get_data_handle(), 0, record.get_desc().get_size());  // its pages are there
    peer->records.push_back(record);
  }
  if (!f.forward && f.max) record_maxima(*peer, forward, field);
  return peer;
}

const char *refusal(const bench_facts &f) {
  if (!f.sliding) return "no such operator";
  if (f.type > kBf16 || f.divisor != 0) return "no such parameter";
  // It divides by the whole window even where that reaches past the padding.
  if (!f.max && f.ceil && f.include_pad) return "another divisor";
  const auto in = tag_of(f.spatial, f.in, f.in_step), out = tag_of(f.spatial, f.out, f.out_step);
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

double onednn_call(void *handle, int64_t set, void *outputs, void *cells, int calls) {
  Peer &peer = *static_cast<Peer *>(handle);
  peer.outputs.set_data_handle(outputs);
  peer.cells.set_data_handle(cells);
  std::unordered_map<int, memory> arguments{{peer.outputs_argument, peer.outputs},
                                            {peer.cells_argument, peer.cells}};
  if (!peer.records.empty())
    arguments.insert({DNNL_ARG_WORKSPACE, peer.records[static_cast<size_t>(set)]});
  const double start = omp_get_wtime();
  for (int i = 0; i < calls; i++) {
    peer.call.execute(peer.stream, arguments);
    peer.stream.wait();
  }
  return (omp_get_wtime() - start) * 1e6 / calls;
}
