"""numbers: the kinds of numbers, for isinstance."""


class Number:
    @classmethod
    def __class_instancecheck__(cls, obj):
        return isinstance(obj, (int, float))


class Complex(Number):
    pass


class Real(Number):
    pass


class Rational(Number):
    @classmethod
    def __class_instancecheck__(cls, obj):
        return isinstance(obj, int)


class Integral(Rational):
    pass
