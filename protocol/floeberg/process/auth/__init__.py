"""Who is calling: tokens, passwords and certificates, and the principals that they stand for."""

from floeberg.process.auth.gate import Gate
from floeberg.process.auth.principals import Principal
from floeberg.process.auth.redeeming import check_redeemer

__all__ = ["Gate", "Principal", "check_redeemer"]
