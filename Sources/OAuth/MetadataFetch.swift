// SPDX-License-Identifier: Apache-2.0

/// Fetches the provider's metadata from the first place that has it.
struct MetadataFetch: Sendable {
    enum Step {
        case send(ProviderRequest)
        case done(ProviderMetadata)
    }

    private let issuer: Issuer
    private let transport: EndpointURL.Transport
    private var locations: [EndpointURL]

    init(_ issuer: Issuer, _ transport: EndpointURL.Transport) {
        self.issuer = issuer
        self.transport = transport
        locations = issuer.metadataLocations
    }

    mutating func start() -> ProviderRequest { ProviderRequest(.metadata, locations.removeFirst()) }

    mutating func received(_ outcome: ProviderOutcome) throws(OAuthError) -> Step {
        switch outcome {
        case .failure(let failure):
            throw failure.error(at: .metadata)
        case .response(let response):
            if response.status == 200 {
                return .done(try ProviderMetadata(parsing: response.body, issuer: issuer, transport))
            }
            guard (400..<500).contains(response.status), response.status != 429, !locations.isEmpty else {
                throw Self.missing(issuer, response)
            }
            return .send(start())
        }
    }

    private static func missing(_ issuer: Issuer, _ response: ProviderResponse) -> OAuthError {
        let error = ProviderError.error(response, at: .metadata)
        guard !error.isTransient else { return error }
        return OAuthError(
            .unsupportedProvider, .profile, "\(issuer) has no metadata (\(response.summary))",
            hint: "check the issuer in the profile")
    }
}
