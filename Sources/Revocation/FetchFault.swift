// SPDX-License-Identifier: Apache-2.0

/// Why a status could not be fetched.
package enum FetchFault: Error, Equatable {
    /// The URL is never fetched, with a short sentence that says why.
    case notAsked(String)
    /// An address that ``AddressRule`` does not permit.
    case addressRefused(String)
    /// A port of this machine on which this process listens.
    case ownPort(UInt16)
    /// Too many fetches are waiting.
    case tooMany
    case timedOut(seconds: Int)
    case tooLarge(limitBytes: Int)
    /// Another status than 200.
    case status(Int)
    /// libcurl's sentence.
    case failed(String)
    /// The body is not the requested document.
    case malformed(String)

    /// Follows the name of the source: `OCSP responder http://ocsp.example did not answer within 5 seconds`.
    package var text: String {
        switch self {
        case .notAsked(let why): "was not asked: \(why)"
        case .addressRefused(let address):
            "was not asked: \(address) is not a public address of another machine, "
                + "and the trust anchor is not one of Certs/anchors"
        case .ownPort(let port): "was not asked: port \(port) is this proxy's own"
        case .tooMany: "was not asked: too many others are being asked"
        case .timedOut(let seconds): "did not answer within \(seconds) seconds"
        case .tooLarge(let limit): "sent more than \(limit >> 10) KiB"
        case .status(let status) where (300...399).contains(status):
            "answered with a redirect (\(status)), which is not followed"
        case .status(let status): "answered with the status \(status)"
        case .failed(let why): "could not be reached: \(why)"
        case .malformed(let why): "is not usable: \(why)"
        }
    }
}
