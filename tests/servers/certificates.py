"""Keys and certificates of a control plane: one authority signs the servers' certificate and the administrator's."""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


class Authority:
    """A certificate authority whose files lie in `folder`: ca.crt, and NAME.crt with NAME.key for what it issued."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._key = rsa.generate_private_key(65537, 2048)
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
        certificate = self._builder(self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.certificate = folder / "ca.crt"
        self.certificate.write_bytes(_pem(certificate.sign(self._key, hashes.SHA256())))

    def server(self, name: str, address: str, *hosts: str) -> None:
        """A certificate of a server at `address`, an IP address, that clients also reach as `hosts`."""
        names = [x509.IPAddress(ipaddress.ip_address(address)), *map(x509.DNSName, hosts)]
        self._issue(name, [x509.NameAttribute(NameOID.COMMON_NAME, name)], names)

    def user(self, name: str, group: str) -> None:
        """A client certificate, which the API server takes as user `name` of `group`."""
        attributes = [(NameOID.ORGANIZATION_NAME, group), (NameOID.COMMON_NAME, name)]
        self._issue(name, [x509.NameAttribute(*each) for each in attributes], [x509.DNSName(name)])

    def key(self, name: str) -> None:
        """A pair of keys for tokens of service accounts: NAME.key and NAME.pub."""
        key = rsa.generate_private_key(65537, 2048)
        self._write_key(name, key)
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        (self.folder / f"{name}.pub").write_bytes(public)

    def _issue(self, name: str, subject: list[x509.NameAttribute], names: list[x509.GeneralName]) -> None:
        key = rsa.generate_private_key(65537, 2048)
        certificate = self._builder(x509.Name(subject), key).add_extension(
            x509.SubjectAlternativeName(names), critical=False
        )
        (self.folder / f"{name}.crt").write_bytes(_pem(certificate.sign(self._key, hashes.SHA256())))
        self._write_key(name, key)

    def _builder(self, subject: x509.Name, key: rsa.RSAPrivateKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateBuilder(issuer_name=self._name, subject_name=subject, public_key=key.public_key())
        return builder.serial_number(x509.random_serial_number()).not_valid_before(now - DAY).not_valid_after(now + DAY)

    def _write_key(self, name: str, key: rsa.RSAPrivateKey) -> None:
        unencrypted = serialization.NoEncryption()
        encoded = (serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, unencrypted)
        (self.folder / f"{name}.key").write_bytes(key.private_bytes(*encoded))


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
