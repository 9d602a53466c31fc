#include "backends/gpu/products/claim.h"

#include <algorithm>
#include <cmath>

#include "backends/gpu/products/product_text.h"
#include "kernel/math/math.h"
#include "kernel/simplify.h"
#include "lowering/one_row.h"
#include "lowering/products/epilogue.h"

namespace rlx::gpu {
namespace {

/// The loops of a product's results, and the flat element of the dot there.
ProductLoops add_loops(Kernel& kernel, const Product& product, Index& flat) {
  ProductLoops loops{};
  flat = Index(0);
  const auto add = [&](const ProductAxis& axis) {
    const int loop = kernel.add_variable(axis.extent);
    kernel.loops.push_back(loop);
    flat = flat + Index::variable(loop, axis.extent) * axis.c_stride;
    return loop;
  };
  for (const ProductAxis& axis : product.items) loops.items.push_back(add(axis));
  loops.row = add(product.rows);
  loops.column = add(product.columns);
  return loops;
}

/// Stores the last value of the region, from the elements of the dot on. False where one element of the dot does not become one of it.
bool store_region(const Draft& draft, Kernel& kernel, const Index& flat, const Product& product, const std::vector<ValueId>& region,
                  bool computes_dot) {
  const Graph& graph = draft.graph;
  const Type& type = graph.type(product.dot);
  const auto at_of = places_of(graph, product.dot, unflatten(flat, type.shape), region);
  if (!at_of) return false;
  const ValueId last = region.back();
  const auto is_stored = draft.stored_test();
  const auto narrow = narrow_operands(graph, product.dot);
  const auto inside = [&](ValueId v) {
    return v == product.dot || std::ranges::find(region, v) != region.end() || (narrow && computes_dot && narrow->widened.count(v) > 0);
  };
  Puller puller(graph, kernel, [&](ValueId v) { return inside(v) ? v == product.dot && !computes_dot : is_stored(v); });
  const ExprId value = puller.pull(last, at_of->at(last), computes_dot || !(last == product.dot));
  const Index store = flatten(at_of->at(last), graph.type(last).shape);
  const auto is_linear = [](const Index::Term& term) { return term.atom->kind != Atom::Kind::loaded; };
  if (!std::ranges::all_of(store.terms(), is_linear)) return false;
  if (!computes_dot && !read_tile(kernel, product.dot, flatten(at_of->at(product.dot), type.shape), Index(0), product.sum())) return false;
  kernel.stores.push_back({puller.buffer_of(last, true), store, value});
  return true;
}

/// What is done with one sum.
std::optional<Kernel> epilogue_of(const Draft& draft, const Product& product, const std::vector<ValueId>& region) {
  Kernel kernel;
  kernel.tile = true;
  kernel.symbols = draft.symbols;
  Index flat;
  add_loops(kernel, product, flat);
  if (!store_region(draft, kernel, flat, product, region, false)) return std::nullopt;
  if (const DType dtype = draft.graph.type(product.dot).dtype; dtype != product.sum()) round_sums(kernel, product.dot, dtype);
  simplify(kernel);
  expand_math(kernel);
  return kernel;
}

class Products final : public GraphClaim {
 public:
  explicit Products(Draft& draft) : draft_(draft), graph_(draft.graph), cut_(draft.cut) {
    std::vector<ValueId> dots;
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id)
      if (multiplies_much({id, 0})) dots.push_back({id, 0});
    for (const ValueId dot : dots) cut_.store(dot);  // operands of later products may be earlier ones
    std::set<ValueId> read, taken;
    for (const ValueId dot : dots)
      if (const auto narrow = narrow_operands(graph_, dot)) read.insert(narrow->values.begin(), narrow->values.end());
    for (const ValueId dot : dots) claim(dot, read, taken);
  }

  void store_operands() override {
    ValueId blocker;
    for (const auto& [dot, region] : regions_)
      while (!as_product(graph_, dot, draft_.stored_test(), blocker))
        if (!cut_.store(blocker)) fail_internal("product: its operand {} stays unreadable", blocker.node);
  }
  std::vector<std::vector<ValueId>> regions() const override {
    std::vector<std::vector<ValueId>> all;
    for (const auto& [dot, region] : regions_) all.push_back(region);
    return all;
  }
  void build() override {
    for (auto& [dot, region] : regions_) {
      ValueId blocker;
      auto product = as_product(graph_, dot, draft_.stored_test(), blocker);
      if (!product) fail_internal("product: its operand {} is not stored", blocker.node);
      auto epilogue = epilogue_of(draft_, *product, region);
      if (!epilogue) {
        region = {dot};
        cut_.store(dot);
        epilogue = epilogue_of(draft_, *product, region);
      }
      if (!epilogue) fail_internal("product: the result {} cannot be stored", dot.node);
      built_.emplace(region.back(), Built{std::move(*product), region, std::move(*epilogue)});
    }
  }
  std::optional<Launch> launch(ValueId value) override {
    const auto found = built_.find(value);
    return found == built_.end() ? std::nullopt : std::optional(launch_of(found->second));
  }

 private:
  struct Built {
    Product product;
    std::vector<ValueId> region;
    Kernel epilogue;
  };

  /// Of types that tiles multiply, in matrices for which they pay.
  bool multiplies_much(ValueId v) const {
    constexpr std::int64_t least_rows = 4, least = 16, least_work = 1 << 16;
    const Node& node = graph_.node(v.node);
    if (!cut_.live(v.node) || cut_.on_host(v.node) || node.op->name != "dot") return false;
    const DType type = node.results[0].dtype;
    if (type != f32 && type != bf16 && type != f16 && type != i32) return false;
    const auto narrow = narrow_operands(graph_, v);
    const std::vector<ValueId> read = narrow ? std::vector(narrow->values.begin(), narrow->values.end()) : node.operands;
    ValueId blocker;
    const auto product = as_product(graph_, v, [&](ValueId x) { return std::ranges::find(read, x) != read.end(); }, blocker);
    if (!product || !draft_.target.caps.multiplies(product->element)) return false;
    const std::int64_t rows = product->rows.extent.upper(), columns = product->columns.extent.upper(),
                       depth = product->depth.extent.upper();
    return rows >= least_rows && std::min(columns, depth) >= least &&
           static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(depth) >= least_work;
  }

  void claim(ValueId dot, const std::set<ValueId>& read, std::set<ValueId>& taken) {
    const auto must = [&](ValueId v) { return cut_.must_store(v) || read.count(v) > 0; };
    std::vector<ValueId> region;
    if (draft_.fuse) region = epilogue_region(graph_, dot, cut_.users(), must, [&](ValueId v) { return taken.count(v) > 0; });
    if (region.empty()) region = {dot};
    taken.insert(region.begin(), region.end());
    draft_.claimed.insert(dot.node);
    if (region.size() > 1) cut_.keep_inside(dot);
    cut_.store(region.back());
    regions_[dot] = region;
  }

  Launch launch_of(const Built& built) const {
    Launch launch;
    launch.writes = {built.region.back()};
    launch.kernels = alternatives(built);
    for (const KernelBuffer& buffer : launch.kernels[0].kernel.buffers)
      if (!buffer.written) launch.reads.push_back(buffer.value);
    launch.name = launch.kernels.back().short_name();
    launch.arithmetic = built.product.element == i8 ? "int8" : std::string(name(built.product.element));
    return launch;
  }
  /// What a launch computes, as kernels do that know nothing of tiles.
  std::pair<Kernel, ProductLoops> whole(const Built& built) const {
    Kernel kernel;
    kernel.symbols = draft_.symbols;
    Index flat;
    ProductLoops loops = add_loops(kernel, built.product, flat);
    if (!store_region(draft_, kernel, flat, built.product, built.region, true))
      fail_internal("product: {} becomes no element of its result", built.product.dot.node);
    return {std::move(kernel), std::move(loops)};
  }
  GeneratedKernel tiles(const Built& built, const TileForm& form) const {
    auto [kernel, loops] = whole(built);
    if (form.kind == TileForm::Kind::groups) loops.block = kernel.add_variable(draft_.target.caps.units);
    KernelText text = product_text(built.product, form, kernel, loops, built.epilogue);
    std::vector<std::int64_t> first(kernel.buffers.size());
    return {std::move(kernel), std::move(text), nullptr, std::move(first)};
  }
  /// By groups of lanes, which read the weights once.
  GeneratedKernel of_single_row(const Built& built) const {
    Kernel kernel = whole(built).first;
    auto one = of_one_row(kernel);
    return draft_.generate(one ? std::move(one->first) : std::move(kernel));
  }
  /// The form that takes the least time for so many rows: the tiles of each unit, one after the other.
  TileForm best_form(const Product& product, std::int64_t rows) const {
    const auto tiles = [](std::int64_t extent, int step) {
      const std::int64_t whole = (extent + step - 1) / step;
      return static_cast<double>(whole);
    };
    const auto time = [&](const TileForm& form) {
      double count = tiles(rows, form.rows) * tiles(product.columns.extent.upper(), form.columns);
      for (const ProductAxis& axis : product.items) count *= static_cast<double>(axis.extent.upper());
      return std::ceil(count / draft_.target.caps.units) * form.rows * form.columns / form.rate;
    };
    return std::ranges::min(tile_forms(product, draft_.target.caps), {}, time);
  }
  /// By tiles for few rows and for many, and otherwise for a single one.
  std::vector<GeneratedKernel> alternatives(const Built& built) const {
    constexpr std::int64_t few = 64;
    const Dim& rows = built.product.rows.extent;
    const TileForm large = best_form(built.product, rows.upper()), small = best_form(built.product, std::min(few, rows.upper()));
    const bool differ = small.kind != large.kind || small.rows != large.rows || small.columns != large.columns;
    std::int64_t least = rows.lower();
    std::vector<GeneratedKernel> kernels;
    const auto add = [&](GeneratedKernel kernel, std::int64_t most) {
      kernels.push_back(std::move(kernel));
      if (most < rows.upper() || least > rows.lower()) kernels.back().only = SizeRange{rows, least, most};
      least = most + 1;
    };
    if (least == 1 && rows.upper() > 1) add(of_single_row(built), 1);
    if (differ && least <= few && rows.upper() > few) add(tiles(built, small), few);
    add(tiles(built, large), rows.upper());
    return kernels;
  }

  Draft& draft_;
  const Graph& graph_;
  Cut& cut_;
  std::map<ValueId, std::vector<ValueId>> regions_;  // by the dot: what is computed of it
  std::map<ValueId, Built> built_;                   // by the value that is stored
};

struct ProductClaim final : Claim {
  std::unique_ptr<GraphClaim> start(Draft& draft) const override { return std::make_unique<Products>(draft); }
};

}  // namespace

const Claim& product_claim() {
  static const ProductClaim claim;
  return claim;
}

}  // namespace rlx::gpu
