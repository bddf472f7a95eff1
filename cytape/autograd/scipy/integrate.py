"""`odeint`: `cytape.scipy.integrate`."""

from cytape.scipy.integrate import __getattr__ as __getattr__
from cytape.scipy.integrate import odeint as odeint
