// Eigenvalues and eigenvectors of matrices that are not symmetric, on the host: Householder's reflections to Hessenberg
// form, and QR steps with Wilkinson's shifts to Schur's.
#include "repl/modules/torch/tensor_eigen.h"

#include <algorithm>
#include <complex>
#include <limits>
#include <vector>

#include "repl/modules/torch/tensor_object.h"

namespace kiln::script {

namespace {

using Complex = std::complex<double>;
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr int kMostSteps = 60;  // for one eigenvalue; more than a few are not seen

class Matrix {
 public:
  explicit Matrix(size_t n) : n_(n), elements_(n * n) {}
  Complex& operator()(size_t row, size_t column) { return elements_[row * n_ + column]; }
  size_t size() const { return n_; }
  double largest() const {
    double most = 0;
    for (const Complex& x : elements_) most = std::max(most, std::abs(x));
    return most;
  }

 private:
  size_t n_;
  std::vector<Complex> elements_;
};

/// A = Q H Qᴴ, with zeros below the first subdiagonal of H. A becomes H.
void to_hessenberg(Interp& in, Matrix& a, Matrix& q) {
  const size_t n = a.size();
  std::vector<Complex> v(n);
  for (size_t k = 0; k + 2 < n; ++k) {
    in.check_interrupt();
    double below = 0;
    for (size_t i = k + 2; i < n; ++i) below = std::max(below, std::abs(a(i, k)));
    if (below == 0) continue;
    double norm = 0;
    for (size_t i = k + 1; i < n; ++i) norm = std::hypot(norm, std::abs(a(i, k)));
    const Complex first = a(k + 1, k);
    const Complex turn = first == 0.0 ? Complex(1) : first / std::abs(first);
    double length = 0;
    for (size_t i = k + 1; i < n; ++i) {
      v[i] = a(i, k) + (i == k + 1 ? turn * norm : Complex(0));
      length = std::hypot(length, std::abs(v[i]));
    }
    for (size_t i = k + 1; i < n; ++i) v[i] /= length;
    for (size_t j = k; j < n; ++j) {  // from the left
      Complex sum = 0;
      for (size_t i = k + 1; i < n; ++i) sum += std::conj(v[i]) * a(i, j);
      for (size_t i = k + 1; i < n; ++i) a(i, j) -= 2.0 * v[i] * sum;
    }
    for (Matrix* m : {&a, &q})  // from the right
      for (size_t i = 0; i < n; ++i) {
        Complex sum = 0;
        for (size_t j = k + 1; j < n; ++j) sum += (*m)(i, j) * v[j];
        for (size_t j = k + 1; j < n; ++j) (*m)(i, j) -= 2.0 * sum * std::conj(v[j]);
      }
    for (size_t i = k + 2; i < n; ++i) a(i, k) = 0;
  }
}

/// The eigenvalue of [[a, b], [c, d]] that is nearer to d.
Complex wilkinson(Complex a, Complex b, Complex c, Complex d) {
  const Complex half = 0.5 * (a - d), root = std::sqrt(half * half + b * c);
  const Complex far = std::abs(half + root) >= std::abs(half - root) ? half + root : half - root;
  return far == 0.0 ? d : d - b * c / far;
}

/// One QR step of the rows and columns from `low` to `high`.
void step(Matrix& h, Matrix& q, size_t low, size_t high, Complex shift) {
  const size_t n = h.size();
  struct Rotation {
    double c;
    Complex s;
  };
  std::vector<Rotation> rotations;
  for (size_t i = low; i <= high; ++i) h(i, i) -= shift;
  for (size_t k = low; k < high; ++k) {
    const Complex x = h(k, k), y = h(k + 1, k);
    const double length = std::hypot(std::abs(x), std::abs(y));
    const Complex turn = x == 0.0 ? Complex(1) : x / std::abs(x);
    const Rotation r = length == 0 ? Rotation{1, 0} : Rotation{std::abs(x) / length, turn * std::conj(y) / length};
    rotations.push_back(r);
    for (size_t j = k; j < n; ++j) {
      const Complex upper = h(k, j), lower = h(k + 1, j);
      h(k, j) = r.c * upper + r.s * lower;
      h(k + 1, j) = -std::conj(r.s) * upper + r.c * lower;
    }
  }
  for (size_t k = low; k < high; ++k) {
    const Rotation r = rotations[k - low];
    auto turn = [&](Matrix& m, size_t rows) {
      for (size_t i = 0; i < rows; ++i) {
        const Complex left = m(i, k), right = m(i, k + 1);
        m(i, k) = left * r.c + right * std::conj(r.s);
        m(i, k + 1) = -left * r.s + right * r.c;
      }
    };
    turn(h, k + 2);
    turn(q, n);
  }
  for (size_t i = low; i <= high; ++i) h(i, i) += shift;
}

/// H = Z T Zᴴ with an upper triangle T; q becomes q Z.
void to_schur(Interp& in, Matrix& h, Matrix& q) {
  size_t high = h.size();
  int steps = 0;
  while (high > 1) {
    in.check_interrupt();
    size_t low = high - 1;
    for (; low > 0; --low) {
      const double beside = std::abs(h(low - 1, low - 1)) + std::abs(h(low, low));
      if (std::abs(h(low, low - 1)) <= kEpsilon * (beside == 0 ? h.largest() : beside)) {
        h(low, low - 1) = 0;
        break;
      }
    }
    if (low == high - 1) {
      --high;
      steps = 0;
      continue;
    }
    if (++steps > kMostSteps)
      in.fail_as("RuntimeError", "torch.linalg.eig: the QR steps did not converge after {} of one eigenvalue",
                 kMostSteps);
    const size_t k = high - 1;
    // From time to time another shift, for what Wilkinson's leaves as it is.
    const Complex shift = steps % 10 == 0 ? h(k, k) + Complex(0.75 * std::abs(h(k, k - 1)), 0.4 * std::abs(h(k, k - 1)))
                                          : wilkinson(h(k - 1, k - 1), h(k - 1, k), h(k, k - 1), h(k, k));
    step(h, q, low, k, shift);
  }
}

/// The eigenvectors as columns, each of length 1, and its largest element real as LAPACK has it.
Matrix vectors_of(Interp& in, Matrix& t, Matrix& q) {
  const size_t n = t.size();
  const double least = std::max(kEpsilon * t.largest(), std::numeric_limits<double>::min());
  Matrix out(n);
  std::vector<Complex> x(n);
  for (size_t k = 0; k < n; ++k) {
    in.check_interrupt();
    x[k] = 1;
    for (size_t i = k; i-- > 0;) {
      Complex sum = 0;
      for (size_t j = i + 1; j <= k; ++j) sum += t(i, j) * x[j];
      const Complex apart = t(i, i) - t(k, k);
      x[i] = -sum / (std::abs(apart) < least ? Complex(least) : apart);
    }
    double most = 0, length = 0;
    Complex largest = 1;
    for (size_t i = 0; i < n; ++i) {
      Complex v = 0;
      for (size_t j = 0; j <= k; ++j) v += q(i, j) * x[j];
      out(i, k) = v;
      length = std::hypot(length, std::abs(v));
      // The first of those that are equally large but for rounding.
      if (std::abs(v) > most * (1 + 1e-10)) {
        most = std::abs(v);
        largest = v;
      }
    }
    const Complex scale = std::conj(largest) / std::abs(largest) / length;
    for (size_t i = 0; i < n; ++i) out(i, k) *= scale;
  }
  return out;
}

/// A real matrix has real eigenvalues and pairs of conjugate ones, whose vectors are so too: what rounding leaves
/// between them is taken away. An eigenvalue is one of a pair where another is nearer to its conjugate than it is
/// itself.
void pair_up(Matrix& t, Matrix& vectors) {
  const size_t n = t.size();
  std::vector<bool> done(n, false);
  for (size_t i = 0; i < n; ++i) {
    if (done[i]) continue;
    done[i] = true;
    const Complex conjugate = std::conj(t(i, i));
    auto distance = [&](size_t j) { return std::abs(t(j, j) - conjugate); };
    size_t nearest = i;
    for (size_t j = i + 1; j < n; ++j)
      if (!done[j] && distance(j) < distance(nearest)) nearest = j;
    if (nearest != i) {
      done[nearest] = true;
      const Complex mean = 0.5 * (t(i, i) + std::conj(t(nearest, nearest)));
      t(i, i) = mean;
      t(nearest, nearest) = std::conj(mean);
      for (size_t row = 0; row < n; ++row) vectors(row, nearest) = std::conj(vectors(row, i));
      continue;
    }
    t(i, i) = t(i, i).real();
    double length = 0;
    for (size_t row = 0; row < n; ++row) length = std::hypot(length, vectors(row, i).real());
    for (size_t row = 0; row < n; ++row) vectors(row, i) = vectors(row, i).real() / length;
  }
}

/// eigen(real, imag=None): of batches of matrices, (real parts, imaginary parts) of the eigenvalues and of the vectors.
Value eigen(Interp& in, NativeArgs& a) {
  const Tensor re = seen_tensor(in, a[0], "eig()");
  const bool is_real = !given(a[1]);
  const Shape shape = shape_vector(re);
  if (shape.size() < 2 || shape.back() != shape[shape.size() - 2])
    in.fail_as("RuntimeError", "eig() of {}: it takes square matrices", in.repr(size_value(shape)));
  const auto n = static_cast<size_t>(shape.back());
  const std::vector<double> reals = load_floats(in, re, shape);
  const std::vector<double> imags =
      is_real ? std::vector<double>(reals.size(), 0.0) : load_floats(in, seen_tensor(in, a[1], "eig()"), shape);
  for (const std::vector<double>* part : {&reals, &imags})
    if (!std::ranges::all_of(*part, [](double x) { return std::isfinite(x); }))
      in.fail_as("RuntimeError", "torch.linalg.eig: input tensor should not contain infs or NaNs.");
  std::vector<double> values[2], vectors[2];
  const size_t count = n == 0 ? 0 : reals.size() / (n * n);
  for (size_t b = 0; b < count; ++b) {
    Matrix t(n), q(n);
    for (size_t i = 0; i < n * n; ++i) t(i / n, i % n) = {reals[b * n * n + i], imags[b * n * n + i]};
    for (size_t i = 0; i < n; ++i) q(i, i) = 1;
    to_hessenberg(in, t, q);
    to_schur(in, t, q);
    Matrix v = vectors_of(in, t, q);
    if (is_real) pair_up(t, v);
    for (size_t i = 0; i < n; ++i) {
      values[0].push_back(t(i, i).real());
      values[1].push_back(t(i, i).imag());
    }
    for (size_t i = 0; i < n * n; ++i) {
      vectors[0].push_back(v(i / n, i % n).real());
      vectors[1].push_back(v(i / n, i % n).imag());
    }
  }
  const Shape of_values(shape.begin(), shape.end() - 1);
  std::vector<Value> out;
  for (const std::vector<double>& part : values)
    out.push_back(wrap(store_floats(in, re.device(), DType::kF64, of_values, part)));
  for (const std::vector<double>& part : vectors)
    out.push_back(wrap(store_floats(in, re.device(), DType::kF64, shape, part)));
  return make<Tuple>(std::move(out));
}

constexpr NativeDef kEigen[] = {
    {"eigen(real, imag=None)", eigen, "eigenvalues and vectors of matrices that are not symmetric (on the host)"},
};

}  // namespace

std::span<const NativeDef> eigen_functions() { return kEigen; }

}  // namespace kiln::script
