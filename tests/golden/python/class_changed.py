# An object of a class of the script may become one of another.
class A:
    def f(self):
        return "A", self.x


class B(A):
    def f(self):
        return "B", self.x


a = A()
a.x = 3
print(a.f(), type(a).__name__)
a.__class__ = B
print(a.f(), type(a).__name__, isinstance(a, B), a.__class__ is B)


class C(list):
    pass


for value in (C, 3, int):
    try:
        a.__class__ = value
    except TypeError as e:
        print("TypeError")
