// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

extension Certificate {
    /// Why the certificate is a weak trust anchor, as short sentences; empty if it is not. A verifier trusts an anchor
    /// regardless of its content (RFC 5280 §6.1.1), so only a warning can report weaknesses.
    package var weaknessesAsAnchor: [String] {
        var weaknesses: [String] = []
        if !hasStrongKey { weaknesses.append("its key is \(keyDescription)") }
        if !hasStrongSignature { weaknesses.append("its signature is \(signatureDescription)") }
        if keyUsageText == nil { weaknesses.append("it has no key usage") }
        return weaknesses
    }
}
