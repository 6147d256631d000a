// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignHTTP1

extension FieldLines {
    /// The values of the challenge fields of `source`, for an exchange with it.
    package func challengeFields(of source: ChallengeSource) -> [ChallengeField] {
        let name: FieldName =
            switch source {
            case .origin: .wwwAuthenticate
            case .parentProxy: .proxyAuthenticate
            }
        return valuesBytes(of: name).map { ChallengeField(octets: $0) }
    }
}
