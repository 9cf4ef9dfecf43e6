# Functions of libdevice that have no closed form: of gamma, error inverses and Bessel. Polynomials are Chebyshev
# interpolants of 40-digit values, in t of [-1, 1] over the interval that the code names unless it says otherwise,
# highest power first; docs/math.md has their errors.
import triton
import triton.language as tl
from triton.language.extra import libdevice

ERFINV_NEAR_32 = tl.constexpr((
    6.2027546e-05, -0.0001309572, -0.00023331156, 0.0012388418, -0.0012852012, -0.0041386546, 0.017810764,
    -0.022604331, -0.058922686, 0.7504943, 1.6536546,
))
ERFINV_NEAR_64 = tl.constexpr((
    -2.7032254091069344e-10, 7.689312733742569e-10, 1.5401738716654886e-09, -8.562787796742932e-09,
    4.792369996100387e-09, 3.915473114023045e-08, -9.867713140174249e-08, -1.0185147576818285e-08,
    5.394320648707009e-07, -1.059321402540731e-06, -6.83718721812117e-07, 7.1300572630824496e-06,
    -1.1257319182677936e-05, -1.5027710420277575e-05, 9.33673917780479e-05, -0.0001168888399309713,
    -0.0002643936684366174, 0.0012324855686812834, -0.0012716922684373015, -0.00413731437741443,
    0.017808361818295655, -0.022604447453449802, -0.05892256710377784, 0.7504943200799635, 1.6536545626831027,
))
ERFINV_FAR_64 = tl.constexpr((
    -5.873209034435665e-11, 7.192912161242099e-10, -4.5046195811482427e-10, -5.063793481557383e-09,
    6.9201205263112385e-09, 1.595463674028574e-08, -3.865450115456767e-08, -2.561340883276368e-08,
    1.470619235869588e-07, 5.1339569329068745e-09, -4.971570243132515e-07, 8.09412471951008e-08,
    1.5447595794883855e-06, 1.050905976555012e-06, -6.547075856045029e-06, -4.161108321898589e-07,
    -0.0001107289076872622, 0.0005461711866434301, 0.001664458423628237, -0.020627082457961285, 0.9520076823061123,
))
ERFINV_END_64 = tl.constexpr((
    -7.504714724874639e-10, 1.2540269258389749e-09, 2.586057193924771e-09, -4.289888817554449e-09,
    -5.757861295633691e-09, 9.623177245470436e-09, 4.3624607925394216e-09, -7.0179405438199e-09,
    -9.64216788775525e-09, 1.700441326389356e-08, -1.6197014932560786e-08, 3.1509728547837784e-08,
    -6.910359376587593e-08, 1.382187078553601e-07, -2.831176376779334e-07, 6.078981314640939e-07,
    -1.371327739377212e-06, 3.2979306713613436e-06, -8.604711863214803e-06, 2.522032497998976e-05,
    -9.896381952202628e-05, 0.0005741071061742225, -0.0016198216072914125, -0.012722483172546647, 0.9874844342683555,
))
ERFINV_FAR_32 = tl.constexpr((
    -1.3755434e-06, -6.3270164e-07, 3.6093124e-06, 7.82695e-06, -6.983418e-06, -5.9456625e-06, -3.8654634e-05,
    7.5167554e-05, -0.00047063176, 0.0019650147, 0.0017776024, -0.03015651, 0.9603273,
))
ERFCX_32 = tl.constexpr((
    0.00012761133, -0.00044553503, -0.00022818416, 0.006094855, -0.026396807, 0.07639189, -0.17400473, 0.330849,
    -0.54085433, 0.7732089, -0.97654873, 1.0959957,
))
ERFCX_64 = tl.constexpr((
    -1.8622649661323519e-10, -7.646540425353987e-11, 2.324814003244962e-09, 7.05121915912163e-10,
    -1.820876050143594e-08, -2.753681712173946e-10, 1.269526622134746e-07, -7.44026425622834e-08,
    -8.478822848394872e-07, 1.4235449438420768e-06, 4.695056181652002e-06, -1.8860655851585005e-05,
    -3.635329756552908e-06, 0.0001768127680715077, -0.00045505265938175656, -0.0002809588591883017,
    0.006112055653486391, -0.026370053340693672, 0.07638151490940508, -0.1740109372399329, 0.3308515878780107,
    -0.5408538313132345, 0.7732087022652371, -0.976548729080882, 1.095995661000491,
))
LGAMMA_32 = tl.constexpr((
    1.8091514e-05, -3.8580474e-05, 2.3881606e-05, -5.2839736e-05, 0.00019173969, -0.00042515414, 0.0009125945,
    -0.0021022423, 0.004998996, -0.012384944, 0.03296499, -0.10031728, 0.42278433,
))
LGAMMA_64 = tl.constexpr((
    3.9592899392841773e-10, -8.152852870624974e-10, -1.1901740908188623e-09, 2.444386936885692e-09,
    4.305220610785349e-09, -8.87711600370437e-09, 3.821541398410965e-10, -9.172949166290702e-10,
    2.4876913129422816e-08, -5.1889381335192836e-08, 8.858800462314761e-08, -1.8624721164419038e-07,
    4.0491176292722286e-07, -8.554195306752008e-07, 1.8077244952477939e-06, -3.8465374565754054e-06,
    8.22227252824938e-06, -1.7661849545809686e-05, 3.8168877217049974e-05, -8.309510094797398e-05,
    0.00018255264018626728, -0.0004057073998333553, 0.0009153769221939477, -0.0021081308338353785,
    0.004998641164698706, -0.012384192193374183, 0.032965000621155816, -0.1003173016743539, 0.42278433509846713,
))
STIRLING_32 = tl.constexpr((
    0.0007800347, -0.0027776984, 0.083333336,
))
STIRLING_64 = tl.constexpr((
    -0.020855820837463117, 0.0062081367662297935, -0.001914965912162907, 0.0008417325268022405,
    -0.0005952380234291254, 0.0007936507935117282, -0.0027777777777776747, 0.08333333333333333,
))
GAMMA_32 = tl.constexpr((
    1.5492056e-05, -4.634597e-05, 9.641257e-05, -0.00028335402, 0.0009178195, -0.0024286914, 0.009039966,
    -0.013410746, 0.10370338, 0.016169144, 0.88622695,
))
GAMMA_64 = tl.constexpr((
    -1.2065795806905696e-10, 3.619717777203195e-10, -4.222860834512988e-10, 1.2668173984174721e-09,
    -5.376342561695971e-09, 1.612798073885946e-08, -4.626341522760591e-08, 1.3876428601225825e-07,
    -4.179235032058876e-07, 1.253145449369262e-06, -3.7549508241290755e-06, 1.125235085741242e-05,
    -3.363759182230581e-05, 0.00010092817306671023, -0.000296890120563888, 0.0009157859942678981,
    -0.0024225953844321537, 0.009040334940473975, -0.01341185057059498, 0.10370336342207065, 0.0161691987244425,
    0.886226925452758,
))
GAMMA_FAR_32 = tl.constexpr((
    0.0005810355, -0.0069654826, 0.00872498, 0.20888503, 2.5066283,
))
GAMMA_FAR_64 = tl.constexpr((
    -0.002196060280020509, 0.002679606008458698, -0.00021383910620627902, -0.001476371046616498,
    0.00017428487850858982, 0.001965315208402948, -0.0005752017628295134, -0.006721090466043162,
    0.008703570397961406, 0.20888568955258358, 2.5066282746310007,
))
J0_32 = tl.constexpr((
    3.891361226805403e-05, -0.0004510579107654308, 0.004057638053138105, -0.028465194337930818, 0.14598904158218284,
    -0.507471340191941, 1.0383794266675095, -0.808088219174259, -0.6484692813631918, 0.930301217866816,
    0.04582966485981377,
))
J0_64 = tl.constexpr((
    4.0030437640628113e-13, -1.2433011305498057e-11, 3.363450456866669e-10, -7.915323084479192e-09,
    1.5956109057781304e-07, -2.7177492236298073e-06, 3.8473197856340086e-05, -0.000443545922431152,
    0.004058078989140805, -0.028472718610882044, 0.14598884856759267, -0.5074680458471, 1.0383794611437211,
    -0.8080888076696872, -0.6484692830871837, 0.9303012472958572, 0.04582966485981377,
))
J1_32 = tl.constexpr((
    -2.4346123495740103e-05, 0.00025419190333912786, -0.002028776332301307, 0.012452696924011632,
    -0.05474591225291532, 0.15858523602286737, -0.25959485352789385, 0.1515164674098694, 0.08105866015072569,
    -0.058143824275174776,
))
J1_64 = tl.constexpr((
    -4.0037632815796753e-13, 1.1658971884036515e-11, -2.943016833829492e-10, 6.43119017895857e-09,
    -1.196708182234105e-07, 1.8684526037182737e-06, -2.404574866003479e-05, 0.00024949458135972767,
    -0.0020290394945704573, 0.012456814392263375, -0.05474581821284725, 0.15858376432721838, -0.2595948652859303,
    0.15151665143806636, 0.08105866038589796, -0.05814382795599107,
))
Y0_32 = tl.constexpr((
    -7.368394609396167e-05, 0.0008208712988989396, -0.007024851424121442, 0.04635230954586975, -0.2189578603990335,
    0.6721835314044196, -1.0775476642594597, 0.14412517090590327, 1.6470964753960553, -0.8284358327122593,
    -0.382250654459425,
))
Y0_64 = tl.constexpr((
    -8.838468394309022e-13, 2.6926937109987802e-11, -7.130468040126112e-10, 1.6390875017619395e-08,
    -3.218507833909702e-07, 5.321318810394401e-06, -7.279541882544516e-05, 0.00080615860596164,
    -0.007025741057270546, 0.046367047681375125, -0.2189574709617164, 0.6721770783431679, -1.0775477338215995,
    0.14412632369302475, 1.6470964788745466, -0.8284358903604587, -0.382250654459425,
))
Y1_32 = tl.constexpr((
    -3.6372914678056287e-06, 4.533194089789256e-05, -0.0004437810133321709, 0.0034218321719131158,
    -0.019628772735326767, 0.07854815753880559, -0.19639839575893134, 0.23507204056452238, 0.02336757157896153,
    -0.2433774282164897, 0.07075985882118005,
))
Y1_64 = tl.constexpr((
    8.758166378734063e-13, -2.4995314348224963e-11, 6.169694909376002e-10, -1.3153147370992129e-08,
    2.3804930317310604e-07, -3.6010000225850992e-06, 4.4674330127252e-05, -0.00044381734344201836,
    0.0034224907399185273, -0.01962875683311711, 0.07854786922242538, -0.19639839859930203, 0.23507209206669755,
    0.02336757172099348, -0.24337743079193114, 0.07075985882118005,
))
P0_32 = tl.constexpr((
    1.3003826e-08, -2.0682207e-07, 6.1373657e-06, -0.00053636695, 0.9994573,
))
P0_64 = tl.constexpr((
    -1.1346926815291663e-14, 3.334599531685773e-14, -6.563491590174781e-14, 2.454626647456918e-13,
    -1.061860361827791e-12, 4.786833648457065e-12, -2.4883792349430343e-11, 1.5500573849457377e-10,
    -1.2121178913027262e-09, 1.2803761421389911e-08, -2.052744816021978e-07, 6.137416080111143e-06,
    -0.0005363673192130033, 0.9994572757882519,
))
Q0_32 = tl.constexpr((
    -4.6335032e-08, 5.75109e-07, -1.1816862e-05, 0.00054665026, -0.12444091,
))
Q0_64 = tl.constexpr((
    9.756113507128432e-14, -2.729058891731019e-13, 4.743918565467509e-13, -1.6798068504524111e-12,
    6.934511868227323e-12, -2.88387465828897e-11, 1.362452803693964e-10, -7.575872758461843e-10,
    5.146228618919075e-09, -4.534973594868882e-08, 5.684971885449538e-07, -1.1817110660731776e-05,
    0.0005466519279475136, -0.12444091103610816,
))
P1_32 = tl.constexpr((
    -1.4929487e-08, 2.471035e-07, -7.959639e-06, 0.0008988045, 1.0009071,
))
P1_64 = tl.constexpr((
    1.2012721775449965e-14, -3.5404613525657416e-14, 7.019004954768849e-14, -2.635099411586755e-13,
    1.1443000350441976e-12, -5.190987549128526e-12, 2.7205216071451606e-11, -1.713108363257052e-10,
    1.3603054724512454e-09, -1.4708512970871809e-08, 2.453676622679369e-07, -7.95969469844003e-06,
    0.0008988049416705564, 1.0009070262780821,
))
Q1_32 = tl.constexpr((
    5.2441862e-08, -6.7070255e-07, 1.4569342e-05, -0.0007697149, 0.374215,
))
Q1_64 = tl.constexpr((
    -1.0308138671963011e-13, 2.8910711721761855e-13, -5.061753256584603e-13, 1.798464167692092e-12,
    -7.446940085047187e-12, 3.114226481045957e-11, -1.481767246888408e-10, 8.315594957016384e-10,
    -5.720887751116045e-09, 5.1361067953963376e-08, -6.633568564937367e-07, 1.456961480935691e-05,
    -0.0007697167057643569, 0.3742149922195918,
))
I0_32 = tl.constexpr((
    4.7732174e-25, 1.05749423e-22, 7.7339604e-20, 2.86202e-17, 9.402516e-15, 2.4022715e-12, 4.709621e-10,
    6.7816664e-08, 6.781686e-06, 0.00043402778, 0.015625, 0.25, 1,
))
I0_64 = tl.constexpr((
    2.2452077177400944e-49, 2.2238278434192635e-46, 3.596549115792542e-43, 4.594630974993641e-40,
    5.31926014712257e-37, 5.4462461970250645e-34, 4.901665247204047e-31, 3.8429033925035574e-28,
    2.5978027762033854e-25, 1.4963343966206703e-22, 7.242258480217414e-20, 2.8969033920766946e-17,
    9.385966990329896e-15, 2.4028075495244387e-12, 4.709502797067901e-10, 6.781684027777778e-08,
    6.781684027777777e-06, 0.00043402777777777775, 0.015625, 0.25, 1.0,
))
I1_32 = tl.constexpr((
    1.7599168e-26, 4.708715e-24, 3.462455e-21, 1.4363737e-18, 5.22015e-16, 1.5015695e-13, 3.3639716e-11,
    5.651397e-09, 6.781685e-07, 5.4253473e-05, 0.0026041667, 0.0625, 0.5,
))
I1_64 = tl.constexpr((
    5.255438093674271e-51, 5.618718795983074e-48, 9.446649623370257e-45, 1.2766214362296355e-41,
    1.5644452567861228e-38, 1.7019559662373366e-35, 1.633888130892543e-32, 1.37246551282913e-29,
    9.991549132667242e-27, 6.234726652804545e-24, 3.2919356728204178e-21, 1.4484516960384623e-18,
    5.214426105738813e-16, 1.5017547184527745e-13, 3.363930569334215e-11, 5.651403356481481e-09,
    6.781684027777778e-07, 5.425347222222222e-05, 0.0026041666666666665, 0.0625, 0.5,
))
I0_FAR_32 = tl.constexpr((
    0.000100266916, 0.00032522946, 0.0009057137, 0.004398331, 0.033212468, 0.40605837, 10.017664, 1198.8713,
))
I0_FAR_64 = tl.constexpr((
    -7.280087454400153e-08, 2.7170717091511835e-07, 5.275724944419067e-07, -1.9360103255044253e-06,
    -1.8863233623257637e-06, 6.4498429883005e-06, 4.794836985673459e-06, -1.3505442037432378e-05,
    -1.0690560178287382e-05, 1.9442597534076714e-05, 2.2656039314883696e-05, -1.4957237012889628e-05,
    -4.0026847598067016e-05, -2.043889237031492e-05, 2.253414678687323e-05, 6.429272582764274e-05,
    0.00011722654012835803, 0.00026447102740278524, 0.0008864174310739989, 0.004423287587562459,
    0.033216915571561124, 0.40605439491489387, 10.017664276583723, 1198.8712780306598,
))
I1_FAR_32 = tl.constexpr((
    -0.00011284722, -0.00036720693, -0.0010577021, -0.005440269, -0.044824805, -0.65353745, -29.06308, 1160.7804,
))
I1_FAR_64 = tl.constexpr((
    6.68383501823738e-08, -2.8294926479114297e-07, -4.853972683762942e-07, 2.0189276784102508e-06,
    1.750020458367586e-06, -6.744238918851873e-06, -4.5364856752696965e-06, 1.4200628272084744e-05,
    1.0438614921683072e-05, -2.070102019234611e-05, -2.2915373187262962e-05, 1.660995274773889e-05,
    4.188766723910329e-05, 2.0412343223100552e-05, -2.5135941447948336e-05, -6.973689768256713e-05,
    -0.00012856424067464296, -0.0002981278453810466, -0.0010385229401582551, -0.005469790363450731,
    -0.04482927738404316, -0.6535326012383396, -29.063080004456026, 1160.7804465749152,
))


@triton.jit
def horner(t, c):
    p = c[0] * t + c[1]
    for k in tl.static_range(2, len(c)):
        p = p * t + c[k]
    return p


@triton.jit
def float32_or_float64(x):
    known: tl.constexpr = x.dtype == tl.float32 or x.dtype == tl.float64
    tl.static_assert(known, "it takes float32 or float64: cast with .to(tl.float32)")


@triton.jit
def exp(x):
    # CUDA's approximation of float32 loses digits with the size of x; that of a fraction does not.
    if x.dtype == tl.float64:
        return tl.exp(x)
    else:
        x = tl.minimum(tl.maximum(x, -174.0), 174.0)
        n = libdevice.rint(x * 1.4426950408889634)
        r = tl.fma(n, -1.4286068e-06, tl.fma(n, -0.693145751953125, x))
        i = n.to(tl.int32)
        half = i >> 1
        low = ((half + 127) << 23).to(tl.float32, bitcast=True)
        high = ((i - half + 127) << 23).to(tl.float32, bitcast=True)
        return tl.exp2(r * 1.4426950408889634) * low * high


# --- the error function's relatives


@triton.jit
def erfcx_of_positive(x):
    # (x + 4) erfcx(x) is smooth in (x - 4) / (x + 4), which goes from -1 to 1.
    d = 1.0 / (x + 4.0)
    t = tl.where(x == float("inf"), 1.0, (x - 4.0) * d).to(x.dtype)
    if x.dtype == tl.float64:
        return horner(t, ERFCX_64) * d
    else:
        return horner(t, ERFCX_32) * d


@triton.jit
def exp_of_square(x, sign):
    # exp(± x²), with what the square loses.
    s = x * x
    lost = tl.where(s < float("inf"), tl.fma(x, x, -s), 0.0).to(x.dtype)
    e = exp(sign * s)
    return tl.where(e < float("inf"), e + e * (sign * lost), e)


@triton.jit
def erfc(x):
    float32_or_float64(x)
    a = tl.abs(x)
    r = exp_of_square(a, -1.0) * erfcx_of_positive(a)
    return tl.where(x != x, x, tl.where(x < 0.0, 2.0 - r, r))


@triton.jit
def erfcx(x):
    float32_or_float64(x)
    a = tl.abs(x)
    r = erfcx_of_positive(a)
    return tl.where(x != x, x, tl.where(x < 0.0, 2.0 * exp_of_square(a, 1.0) - r, r))


@triton.jit
def inverse_erf(x, w):
    # erf⁻¹(x), where w = -log(1 - x²): x P(w) up to 6.25, and above with s = sqrt(w) s Q(1 / s).
    s = tl.sqrt_rn(tl.maximum(w, 6.25).to(w.dtype))
    r = tl.where(s == float("inf"), 0.0, 1.0 / s).to(w.dtype)
    if x.dtype == tl.float64:
        near = horner(w * 0.32 - 1.0, ERFINV_NEAR_64)
        far = horner(r * 9.166666666666666 - 2.6666666666666665, ERFINV_FAR_64)
        end = horner(r * 13.762557077625571 - 1.502283105022831, ERFINV_END_64)
        far = tl.where(s > 5.5, end, far)
    else:
        near = horner(w * 0.32 - 1.0, ERFINV_NEAR_32)
        far = horner(r * 6.5822784 - 1.6329114, ERFINV_FAR_32)
    return tl.where(w != w, w, tl.where(w <= 6.25, x * near, libdevice.copysign(s * far, x)))


@triton.jit
def erfinv(x):
    float32_or_float64(x)
    return inverse_erf(x, -tl.log((1.0 - x) * (1.0 + x)))


@triton.jit
def erfcinv(x):
    float32_or_float64(x)
    w = -(tl.log(x) + tl.log(2.0 - x))
    return tl.where(x == 1.0, 0.0, inverse_erf(1.0 - x, tl.where(tl.abs(x - 1.0) < 0.5, -tl.log(x * (2.0 - x)), w)))


@triton.jit
def normcdfinv(x):
    return 0.0 - 1.4142135623730951 * erfcinv(2.0 * x)


# --- gamma


@triton.jit
def lgamma_of_positive(x):
    # log Γ(x), and m and r with x Γ(x) = m e^r, where no logarithm is taken of m.
    # log Γ(1 + u) = u (u - 1) P(u) for u of [0, 2]: x itself below 1; what is above 3 steps down to there, with
    # Γ(x) = (x - 1) Γ(x - 1). Stirling's series from 8 on.
    small = x < 1.0
    y = tl.minimum(x, 8.0).to(x.dtype)
    product = tl.full([], 1.0, x.dtype)
    for k in tl.static_range(5):
        product = tl.where(y >= 3.0, product * (y - 1.0), product)
        y = tl.where(y >= 3.0, y - 1.0, y)
    u = tl.where(small, x, y - 1.0)
    far = x >= 8.0
    log = tl.log(tl.where(far | small, x, product))
    r = libdevice.div_rn(tl.full([], 1.0, x.dtype), tl.maximum(x, 8.0).to(x.dtype))
    if x.dtype == tl.float64:
        near = u * (u - 1.0) * horner(u - 1.0, LGAMMA_64)
        series = horner(r * r, STIRLING_64)
    else:
        near = u * (u - 1.0) * horner(u - 1.0, LGAMMA_32)
        series = horner(r * r, STIRLING_32)
    stirling = x * (log - 1.0) + (0.9189385332046728 - 0.5 * log + r * series)
    rest = tl.where(far, stirling, near)
    near = tl.where(small, near - log, tl.where(x >= 3.0, near + log, tl.where(near == 0.0, 0.0, near)))
    factor = tl.where(far, x, tl.where(small, 1.0, x * product)).to(x.dtype)
    return tl.where(x == float("inf"), x, tl.where(far, stirling, near)), factor, rest


@triton.jit
def lgamma(x):
    float32_or_float64(x)
    # Γ(x) Γ(-x) = -π / (x sin(π x)). One logarithm of all factors: those of each would cancel.
    a = tl.abs(x)
    r, factor, rest = lgamma_of_positive(a)
    reflected = -tl.log(tl.abs(libdevice.sinpi(x)) * 0.3183098861837907 * factor) - rest
    # Near 0 it is that of |x|, also where the sine is denormal.
    least: tl.constexpr = 1.0e-18 if x.dtype == tl.float64 else 1.0e-9
    reflected = tl.where(a < least, r, reflected)
    below = (x < 0.0) & (a != float("inf"))
    # Between two integers there is nothing from 2^23 (2^52) on.
    whole = below & (libdevice.trunc(x) == x)
    return tl.where(x != x, x, tl.where(whole, float("inf"), tl.where(below, reflected, r)))


@triton.jit
def tgamma(x):
    float32_or_float64(x)
    # Up to the limit Γ(x) = (x - 1) … (x - k) Γ(1 + u) with u of [0, 1]; from there on x^(x - 1/2) e^-x S(1 / x), whose
    # power is taken in halves, before it overflows.
    limit: tl.constexpr = 8 if x.dtype == tl.float64 else 4
    a = tl.abs(x)
    u = a
    product = tl.full([], 1.0, x.dtype)
    for k in tl.static_range(limit):
        product = tl.where((u >= 1.0) & (k > 0), product * u, product)
        u = tl.where(u >= 1.0, u - 1.0, u)
    y = tl.minimum(tl.maximum(a, limit * 1.0), 190.0 if x.dtype == tl.float64 else 43.0).to(x.dtype)
    r = libdevice.div_rn(tl.full([], 1.0, x.dtype), y)
    power = libdevice.pow(y, 0.5 * y - 0.25)
    if x.dtype == tl.float64:
        near = horner(2.0 * u - 1.0, GAMMA_64)
        series = horner(r, GAMMA_FAR_64)
    else:
        near = horner(2.0 * u - 1.0, GAMMA_32)
        series = horner(r, GAMMA_FAR_32)
    far = a >= limit * 1.0
    # Γ(|x|) is the product of the two.
    one = tl.where(far, power * exp(-y) * series, near).to(x.dtype)
    other = tl.where(far, power, product).to(x.dtype)
    other = tl.where(a < 1.0, 1.0, other).to(x.dtype)
    up = tl.where(a < 1.0, libdevice.div_rn(one, x), one * other)
    pole = tl.full([], 3.141592653589793, x.dtype) * tl.where(a < 1.0, 1.0, -1.0 / x)
    down = libdevice.div_rn(libdevice.div_rn(libdevice.div_rn(pole, libdevice.sinpi(x)), one), other)
    nothing = (x < 0.0) & (libdevice.trunc(x) == x)
    value = tl.where(x < 0.0, down, tl.where(x == float("inf"), x, up))
    return tl.where(x != x, x, tl.where(nothing, float("nan"), value))


# --- Bessel functions. From 8 on J and Y are cos and sin of x less a phase, with amplitudes that are polynomials in
# 64 / x²; below polynomials in x², to which Y adds a logarithm.


@triton.jit
def far_waves(x):
    # cos and sin, and 1 / sqrt(π x), of what is from 8 on
    y = tl.maximum(x, 8.0).to(x.dtype)
    finite = tl.where(y == float("inf"), 8.0, y).to(x.dtype)
    one = tl.full([], 1.0, x.dtype)
    size = 0.5641895835477563 * tl.sqrt_rn(libdevice.div_rn(one, finite))
    size = tl.where(y == float("inf"), 0.0, size).to(x.dtype)
    return tl.cos(finite), tl.sin(finite), size, libdevice.div_rn(one * 8.0, finite)


@triton.jit
def amplitudes(r, p, q):
    t = 2.0 * r * r - 1.0
    return horner(t, p), horner(t, q) * (r * 0.125)


@triton.jit
def far_pair(x, order):
    # J and Y of x
    c, s, size, r = far_waves(x)
    if x.dtype == tl.float64:
        if order == 0:
            p, q = amplitudes(r, P0_64, Q0_64)
        else:
            p, q = amplitudes(r, P1_64, Q1_64)
    else:
        if order == 0:
            p, q = amplitudes(r, P0_32, Q0_32)
        else:
            p, q = amplitudes(r, P1_32, Q1_32)
    if order == 0:
        return size * (p * (c + s) - q * (s - c)), size * (p * (s - c) + q * (c + s))
    else:
        return size * (p * (s - c) + q * (c + s)), size * (q * (s - c) - p * (c + s))


@triton.jit
def near_pair(x, order):
    # J, and what Y adds to its logarithm, in float64: x² - 32 in float32 would lack the digits of a small x.
    y = tl.minimum(x, 8.0).to(tl.float64)
    t = y * y * 0.03125 - 1.0
    if x.dtype == tl.float64:
        if order == 0:
            return horner(t, J0_64), horner(t, Y0_64)
        else:
            return y * horner(t, J1_64), y * horner(t, Y1_64)
    else:
        if order == 0:
            return horner(t, J0_32), horner(t, Y0_32)
        else:
            return y * horner(t, J1_32), y * horner(t, Y1_32)


@triton.jit
def bessel_j(x, order):
    float32_or_float64(x)
    a = tl.abs(x)
    far, y = far_pair(a, order)
    near, rest = near_pair(a, order)
    r = tl.where(a < 8.0, near.to(x.dtype), far)
    if order == 1:
        r = tl.where(x < 0.0, -r, tl.where(x == 0.0, x, r))
    return tl.where(x != x, x, r)


@triton.jit
def bessel_y(x, order):
    float32_or_float64(x)
    j, far = far_pair(x, order)
    j, rest = near_pair(x, order)
    y = tl.minimum(x, 8.0).to(x.dtype)
    near = 0.6366197723675814 * (tl.log(y) * j.to(x.dtype)) + rest.to(x.dtype)
    if order == 1:
        near = near - libdevice.div_rn(tl.full([], 0.6366197723675814, x.dtype), y)
    r = tl.where(x < 8.0, near, far)
    r = tl.where(x == 0.0, -float("inf"), tl.where(x == float("inf"), 0.0, r))
    return tl.where((x < 0.0) | (x != x), float("nan"), r)


@triton.jit
def j0(x):
    return bessel_j(x, 0)


@triton.jit
def j1(x):
    return bessel_j(x, 1)


@triton.jit
def y0(x):
    return bessel_y(x, 0)


@triton.jit
def y1(x):
    return bessel_y(x, 1)


@triton.jit
def largest(n):
    if len(n.shape) == 0:
        return n
    else:
        return tl.max(n)


@triton.jit
def jn(n, x):
    # In float64. Upwards from J0 and J1 where x is above the order; else downwards from an order at which J is nothing
    # (J. C. P. Miller), scaled by 1 = J0 + 2 (J2 + J4 + …); below 1e-8 the first term of the series.
    float32_or_float64(x)
    a = tl.abs(x).to(tl.float64)
    order = n + tl.zeros_like(a).to(tl.int32)
    a = a + tl.zeros_like(order).to(tl.float64)
    most = tl.maximum(largest(order), 1)
    finite = tl.where(a < float("inf"), a, 1.0)
    two_over_a = 2.0 / tl.maximum(finite, 1e-8)
    zeroth = bessel_j(finite, 0)
    below, up = zeroth, bessel_j(finite, 1)
    term = tl.where(order > 0, finite * 0.5, 1.0)
    for k in range(1, most):
        above = k * two_over_a * up - below
        goes_on = k < order
        below, up = tl.where(goes_on, up, below), tl.where(goes_on, above, up)
        term = tl.where(goes_on, term * (finite * 0.5) / (k + 1), term)
    first = (most + tl.sqrt(160.0 * most).to(tl.int32)) // 2 * 2
    ahead, here = tl.zeros_like(finite), tl.zeros_like(finite) + 1.0
    down, total = tl.zeros_like(finite), tl.zeros_like(finite)
    for step in range(0, first):
        k = first - step
        ahead, here = here, k * two_over_a * here - ahead
        scale = tl.where(tl.abs(here) > 1e100, 1e-100, 1.0)
        ahead, here, down, total = ahead * scale, here * scale, down * scale, total * scale
        if k % 2 == 1:
            total = total + here
        down = tl.where(k == order, ahead, down)
    down = down / (2.0 * total - here)
    r = tl.where(order == 0, zeroth, tl.where(finite > order, up, tl.where(finite < 1e-8, term, down)))
    r = tl.where(a == float("inf"), 0.0, tl.where((x < 0.0) & (order % 2 == 1), -r, r))
    return tl.where((x != x) | (order < 0), float("nan"), r).to(x.dtype)


@triton.jit
def yn(n, x):
    # Upwards from Y0 and Y1, in float64, which is stable.
    float32_or_float64(x)
    a = x.to(tl.float64)
    order = n + tl.zeros_like(a).to(tl.int32)
    a = a + tl.zeros_like(order).to(tl.float64)
    ordinary = (a > 0.0) & (a < float("inf"))
    y = tl.where(ordinary, a, 1.0)
    below, up = bessel_y(y, 0), bessel_y(y, 1)
    r = tl.where(order == 0, below, up)
    for k in range(1, largest(order)):
        above = 2.0 * k / y * up - below
        below, up = up, tl.where(up == -float("inf"), up, above)
        r = tl.where(k + 1 == order, up, r)
    r = tl.where(a == 0.0, -float("inf"), tl.where(a == float("inf"), 0.0, r))
    return tl.where((a < 0.0) | (x != x) | (order < 0), float("nan"), r).to(x.dtype)


@triton.jit
def rcp64h(x):
    # The upper half of the reciprocal; the lower bits are 0, and what is denormal counts as 0.
    tl.static_assert(x.dtype == tl.float64, "rcp64h() takes float64")
    least = 2.2250738585072014e-308
    r = libdevice.div_rn(tl.full([], 1.0, tl.float64), tl.where(tl.abs(x) < least, libdevice.copysign(0.0 * x, x), x))
    r = tl.where(tl.abs(r) < least, libdevice.copysign(0.0 * x, x), r)
    r = (r.to(tl.int64, bitcast=True) & -4294967296).to(tl.float64, bitcast=True)
    return tl.where(x != x, x, tl.where(tl.abs(x) == float("inf"), libdevice.copysign(tl.zeros_like(x), x), r))


@triton.jit
def bessel_i(a, near, far):
    # Below 8 a polynomial in x² without cancellation; above e^(x - 8) / sqrt(x) times one in 8 / x.
    y = tl.maximum(a, 8.0).to(a.dtype)
    r = libdevice.div_rn(tl.full([], 8.0, a.dtype), y)
    root = tl.sqrt_rn(tl.where(y == float("inf"), 8.0, y).to(a.dtype))
    above = exp(y - 8.0) * (horner(2.0 * r - 1.0, far) / root)
    z = tl.minimum(a, 8.0).to(a.dtype)
    return horner(z * z, near), tl.where(y == float("inf"), y, above)


@triton.jit
def cyl_bessel_i0(x):
    float32_or_float64(x)
    a = tl.abs(x)
    if x.dtype == tl.float64:
        near, far = bessel_i(a, I0_64, I0_FAR_64)
    else:
        near, far = bessel_i(a, I0_32, I0_FAR_32)
    return tl.where(x != x, x, tl.where(a < 8.0, near, far))


@triton.jit
def cyl_bessel_i1(x):
    float32_or_float64(x)
    a = tl.abs(x)
    if x.dtype == tl.float64:
        near, far = bessel_i(a, I1_64, I1_FAR_64)
    else:
        near, far = bessel_i(a, I1_32, I1_FAR_32)
    r = tl.where(a < 8.0, a * near, far)
    return tl.where(x != x, x, libdevice.copysign(r, x))
