"""abc: classes whose methods must be defined before they have instances."""


def abstractmethod(function):
    if isinstance(function, property):
        function.fget.__isabstractmethod__ = True
    else:
        getattr(function, "__func__", function).__isabstractmethod__ = True
    return function


def abstractproperty(function):
    return property(abstractmethod(function))


def abstractclassmethod(function):
    return classmethod(abstractmethod(function))


def abstractstaticmethod(function):
    return staticmethod(abstractmethod(function))


class ABCMeta:
    __accepted_as_metaclass__ = True


class ABC:
    pass
