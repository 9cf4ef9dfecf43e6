// Minimax coefficients, lowest degree first, found with the Remez exchange in 60-digit arithmetic and rounded to the
// precision that the name ends in. After each legend: the largest relative error of the function built from it, before
// rounding.
#pragma once
#include <cstdint>

namespace kiln::lower::coefficients {

// (e^r - 1 - r) / r², |r| ≤ ln2/2 (2^-28.2)
inline constexpr double kExp32[] = {0x1p-1, 0x1.55548ep-3, 0x1.55545cp-5, 0x1.123c78p-7, 0x1.6db5b6p-10};

// (e^r - 1 - r) / r², |r| ≤ ln2/2 (2^-64.0)
inline constexpr double kExp64[] = {0x1p-1,
                                    0x1.555555555555cp-3,
                                    0x1.555555555555ep-5,
                                    0x1.111111110eb2p-7,
                                    0x1.6c16c16c13498p-10,
                                    0x1.a01a01b3f4c28p-13,
                                    0x1.a01a01b49675ap-16,
                                    0x1.71ddef01c2843p-19,
                                    0x1.27e4beb29cc0dp-22,
                                    0x1.af6dcebcb5af8p-26,
                                    0x1.1f9ea44926b3bp-29};

// (log(1+f) - f + f²/2) / f³, √½ ≤ 1+f ≤ √2 (2^-30.4)
inline constexpr double kLog32[] = {0x1.555546p-2,  -0x1.ffffeep-3, 0x1.99a546p-3,  -0x1.5562e4p-3, 0x1.2332cp-3,
                                    -0x1.fb432cp-4, 0x1.e650a8p-4,  -0x1.e2e9aep-4, 0x1.1b42acp-4};

// (2 atanh s - 2s) / s³ in s², |s| ≤ (√2-1)/(√2+1) (2^-65.7)
inline constexpr double kAtanh64[] = {0x1.5555555555555p-1, 0x1.9999999999e06p-2, 0x1.249249242aaf8p-2,
                                      0x1.c71c7259aa21p-3,  0x1.745cddff6b5d6p-3, 0x1.3b20b4de2c0ep-3,
                                      0x1.0f5bf610a6658p-3, 0x1.0f6a99ee6d5d4p-3};

// (2 atanh s - 2s - ⅔s³) / s⁵ in s², the same s (2^-35.8)
inline constexpr double kPow32[] = {0x1.999ap-2, 0x1.245278p-2, 0x1.dfa34cp-3};

// (2 atanh s - 2s - ⅔s³) / s⁵ in s², the same s (2^-79.8)
inline constexpr double kPow64[] = {0x1.999999999999ap-2, 0x1.249249249246fp-2, 0x1.c71c71c7228p-3,
                                    0x1.745d174179715p-3, 0x1.3b13b313b9674p-3, 0x1.111093def7145p-3,
                                    0x1.e20b9e19b6ddp-4,  0x1.aae9cf39c1f18p-4, 0x1.c32ba7f42a621p-4};

// (sin r - r) / r³ in r², |r| ≤ π/4 (2^-37.5)
inline constexpr double kSin32[] = {-0x1.555556p-3, 0x1.111108p-7, -0x1.a00f68p-13, 0x1.6ccbb4p-19};

// (sin r - r) / r³ in r², |r| ≤ π/4 (2^-68.7)
inline constexpr double kSin64[] = {-0x1.5555555555555p-3, 0x1.111111111110bp-7,   -0x1.a01a01a0189d5p-13,
                                    0x1.71de3a5323178p-19, -0x1.ae64527aae68ap-26, 0x1.61207f91ae835p-33,
                                    -0x1.aa9ba73d75ffcp-41};

// (cos r - 1 + r²/2) / r⁴ in r², |r| ≤ π/4 (2^-33.2)
inline constexpr double kCos32[] = {0x1.55554ap-5, -0x1.6c0c58p-10, 0x1.99f2dep-16};

// (cos r - 1 + r²/2) / r⁴ in r², |r| ≤ π/4 (2^-75.1)
inline constexpr double kCos64[] = {0x1.5555555555555p-5,   -0x1.6c16c16c16c1p-10, 0x1.a01a01a018d01p-16,
                                    -0x1.27e4fb75edb11p-22, 0x1.1eed8c91bfc13p-29, -0x1.939323c2f06f7p-37,
                                    0x1.aabc5c4871544p-45};

// erf(x)/x = P/Q in x², |x| ≤ 3.93 (2^-25.6)
inline constexpr double kErfP32[] = {0x1.20dd74p+0, 0x1.86ba3cp-3,  0x1.b07576p-5,
                                     0x1.ef67bcp-9, 0x1.2aa45ep-12, 0x1.12106ep-19};

inline constexpr double kErfQ32[] = {0x1p+0,        0x1.013c12p-1,  0x1.d4001ep-4,
                                     0x1.eb7034p-7, 0x1.31745cp-10, 0x1.3ecc38p-15};

// tanh(x)/x = P/Q in x², |x| ≤ 9.02 (2^-25.5)
inline constexpr double kTanhP32[] = {0x1p+0, 0x1.120442p-3, 0x1.c9f856p-9, 0x1.59555ep-16, 0x1.c9a3c6p-27};
inline constexpr double kTanhQ32[] = {0x1p+0, 0x1.de576ap-2, 0x1.a7df24p-6, 0x1.5841d8p-12, 0x1.a0b85cp-21};

// erf(x)/x - 1 in x², |x| ≤ 1 (2^-62.7)
inline constexpr double kErfSmall64[] = {0x1.06eba8214db69p-3,   -0x1.812746b0379e6p-2,  0x1.ce2f21a042b2p-4,
                                         -0x1.b82ce3128499cp-6,  0x1.565bcd0db02e3p-8,   -0x1.c02db3d8ed221p-11,
                                         0x1.f9a321a11da3ap-14,  -0x1.f4d1df3949327p-17, 0x1.b9def19de6214p-20,
                                         -0x1.5f1d36c2432adp-23, 0x1.f7a41232511e4p-27,  -0x1.386ac0dcc370ap-30,
                                         0x1.0579ab1237f1bp-34};

// -log2(erfc a), 1 ≤ a ≤ 5.93, weighted for erf (2^-66.1)
inline constexpr double kErfBig64[] = {-0x1.4cbe1c7522b8ep-25, 0x1.a0be8c229937p+0,    0x1.d63e73509a424p-1,
                                       0x1.2faddc3e2ac43p-3,   -0x1.c4a33db42b957p-6,  -0x1.f9101632684b2p-13,
                                       0x1.3434a7a37efbp-9,    -0x1.7f7c09c929405p-11, -0x1.62a5b9a29f048p-14,
                                       0x1.97824ca3e7502p-13,  -0x1.d4c654784f738p-14, 0x1.688021e353494p-15,
                                       -0x1.a6739f5ccce91p-17, 0x1.87f6d8f101c81p-19,  -0x1.2274733a9dd73p-21,
                                       0x1.5565a97088918p-24,  -0x1.38012d0be2357p-27, 0x1.ac0ce5cb2be0ap-31,
                                       -0x1.9ede113fde524p-35, 0x1.fa7ab5dd13fddp-40,  -0x1.24bf985234feap-45};

// 2/π as a binary fraction, 64 bits a word, after one word of zeros for arguments below 2⁵².
inline constexpr uint64_t kTwoOverPi[] = {0x0,
                                          0xa2f9836e4e441529,
                                          0xfc2757d1f534ddc0,
                                          0xdb6295993c439041,
                                          0xfe5163abdebbc561,
                                          0xb7246e3a424dd2e0,
                                          0x06492eea09d1921c,
                                          0xfe1deb1cb129a73e,
                                          0xe88235f52ebb4484,
                                          0xe99c7026b45f7e41,
                                          0x3991d639835339f4,
                                          0x9c845f8bbdf9283b,
                                          0x1ff897ffde05980f,
                                          0xef2f118b5a0a6d1f,
                                          0x6d367ecf27cb09b7,
                                          0x4f463f669e5fea2d,
                                          0x7527bac7ebe5f17b,
                                          0x3d0739f78a5292ea,
                                          0x6bfb5fb11f8d5d08,
                                          0x56033046fc7b6bab};

}  // namespace kiln::lower::coefficients
