// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignNTLM
import CountersignNegotiate

extension AuthenticatorTable {
    /// The schemes that this build answers a 401 with, strongest first. A new scheme is one line here, and its word in
    /// `AuthenticationScheme.supported`.
    package static let supported = AuthenticatorTable(
        [PKeyAuthAuthenticator.shared, KerberosAuthenticator.shared, NTLMAuthenticator.raw, NTLMAuthenticator.spnego]
            + DigestAuthenticator.strongestFirst
            + [DPoPAuthenticator.shared, BearerAuthenticator.shared, BasicAuthenticator.shared])
}
