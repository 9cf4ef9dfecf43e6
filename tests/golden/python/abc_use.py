from abc import ABC, abstractmethod
class Base(ABC):
    @abstractmethod
    def run(self): ...
    def go(self): return self.run()
class D(Base):
    def run(self): return 3
print(D().go())
try: Base()
except TypeError as e: print(e)
