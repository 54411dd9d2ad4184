// Resizes a model to a batch, runs it, converts it to a blob in memory and runs that.
//
//   c++ -std=c++17 batch.cpp $(pkg-config --cflags --libs xnn) -o batch
//   ./batch ../../models/digits_mobilenet_v2_fp32.tflite 4
#include <cstdio>
#include <cstdlib>
#include <exception>

#include <xnn.hpp>

// Runs with the first dimension of the input changed, and returns the outputs.
static std::vector<float> run(xnnd::Session &session, std::size_t batch) {
  const xnnd::Tensor input = session.input(0);
  auto dims = input.dims();
  dims.at(0) = batch;
  input.resize(dims);
  std::size_t index = 0;
  for (float &value : input.data<float>()) value = static_cast<float>(index++ % 255) / 127.5f - 1.0f;
  session.run();
  return session.output(0).reals();
}

int main(int argc, char **argv) try {
  if (argc < 2) return std::fprintf(stderr, "usage: %s MODEL [BATCH]\n", argv[0]), 2;
  const std::size_t batch = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 4;

  const xnnd::Model model(argv[1]);
  xnnd::Session session(model, xnnd::Options().threads(2));
  const auto outputs = run(session, batch);
  std::printf("%s\nbatch of %zu: %zu outputs\n", session.coverage_json().c_str(), batch, outputs.size());

  const auto blob = model.convert(XNND_CONVERT_REQUIRE_FULL);
  xnnd::Session converted(xnnd::Model::copy(blob.bytes.data(), blob.bytes.size()));
  const bool same = run(converted, batch) == outputs;
  std::printf("a blob of %zu bytes computes %s outputs\n", blob.bytes.size(), same ? "the same" : "other");
  return same ? 0 : 1;
} catch (const std::exception &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
