// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

extension RevocationList {
    /// The issuer as text, most specific part first, escaped as in RFC 2253.
    package var issuer: String { withCRL { crl in X509_CRL_get_issuer(crl).map { Certificate.text(of: $0) } ?? "" } }
}
