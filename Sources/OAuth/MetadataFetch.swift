// SPDX-License-Identifier: Apache-2.0

import CountersignJSON

/// Fetches the provider's metadata from the first place that has it.
package struct MetadataFetch: Sendable {
    package enum Step {
        case send(ProviderRequest)
        case done(ProviderMetadata)
    }

    private let issuer: Issuer
    private let transport: EndpointURL.Transport
    private var locations: [EndpointURL]
    /// Of a document at an earlier place that is not JSON.
    private var fault: OAuthError?

    package init(_ issuer: Issuer, _ transport: EndpointURL.Transport) {
        self.issuer = issuer
        self.transport = transport
        locations = issuer.metadataLocations
    }

    package mutating func start() -> ProviderRequest { ProviderRequest(.metadata, locations.removeFirst()) }

    package mutating func received(_ outcome: ProviderOutcome) throws(OAuthError) -> Step {
        switch outcome {
        case .failure(let failure):
            throw failure.error(at: .metadata)
        case .response(let response):
            if response.status == 200 {
                do throws(OAuthError) {
                    return .done(try ProviderMetadata(parsing: response.body, issuer: issuer, transport))
                } catch {
                    // A page for people, which some servers send for every path, is not the metadata of this issuer.
                    // A document of another issuer is final.
                    let isJSON = (try? JSONParser.parse(response.body)) != nil
                    guard !isJSON, !locations.isEmpty else { throw error }
                    fault = error
                    return .send(start())
                }
            }
            guard Self.saysNo(response.status), !locations.isEmpty else {
                throw fault ?? Self.missing(issuer, response)
            }
            return .send(start())
        }
    }

    /// Whether a server with this status has no document there, rather than a temporary fault.
    private static func saysNo(_ status: Int) -> Bool {
        (300..<500).contains(status) && status != 429 && status != 408 || status == 501
    }

    private static func missing(_ issuer: Issuer, _ response: ProviderResponse) -> OAuthError {
        let error = ProviderError.error(response, at: .metadata)
        guard !error.isTransient else { return error }
        return OAuthError(
            .unsupportedProvider, .profile, "\(issuer) has no metadata (\(response.summary))",
            hint: "check the issuer in the profile")
    }
}
