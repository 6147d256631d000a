// SPDX-License-Identifier: Apache-2.0

public import Countersign
import Foundation

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

extension Countersign.ProtectionSpace {
    /// Converts Foundation's protection space. A proxy's gets a method that is never answered, and so does a space for
    /// FTP or the like, because it does not match any site.
    ///
    /// FoundationNetworking has neither the names of acceptable issuers nor a server's certificate, so these stay
    /// empty.
    public init(_ space: URLProtectionSpace) {
        let method = AuthenticationMethod(foundationName: space.authenticationMethod)
        self.init(
            scheme: space.protocol ?? "", host: space.host, port: space.port == 0 ? nil : space.port,
            realm: space.realm, authenticationMethod: space.isProxy() ? .other("\(method) of a proxy") : method)
    }
}

extension URLProtectionSpace {
    /// Converts a protection space. The names of acceptable issuers and the verdict on the server are lost.
    public convenience init(_ space: Countersign.ProtectionSpace) {
        self.init(
            host: space.host, port: space.port, protocol: space.scheme, realm: space.realm,
            authenticationMethod: space.authenticationMethod.foundationName)
    }
}

extension AuthenticationMethod {
    /// Converts one of Foundation's `NSURLAuthenticationMethod…` constants, among them those that FoundationNetworking
    /// marks as unavailable. The default method is Basic; an HTML form, which is not a challenge, and a name that is
    /// not known become `other`.
    public init(foundationName name: String) {
        switch name {
        case NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodDefault: self = .basic
        case NSURLAuthenticationMethodHTTPDigest: self = .digest
        case "NSURLAuthenticationMethodNTLM": self = .ntlm
        case "NSURLAuthenticationMethodNegotiate": self = .negotiate
        case "NSURLAuthenticationMethodBearer": self = .bearer
        case "NSURLAuthenticationMethodClientCertificate": self = .clientCertificate
        case "NSURLAuthenticationMethodServerTrust": self = .serverTrust
        default: self = .other(name)
        }
    }

    /// The value of the `NSURLAuthenticationMethod…` constant. Foundation has none for Bearer, whose name follows the
    /// pattern.
    public var foundationName: String {
        switch self {
        case .basic: NSURLAuthenticationMethodHTTPBasic
        case .digest: NSURLAuthenticationMethodHTTPDigest
        case .ntlm: "NSURLAuthenticationMethodNTLM"
        case .negotiate: "NSURLAuthenticationMethodNegotiate"
        case .bearer: "NSURLAuthenticationMethodBearer"
        case .clientCertificate: "NSURLAuthenticationMethodClientCertificate"
        case .serverTrust: "NSURLAuthenticationMethodServerTrust"
        case .other(let name): name
        }
    }
}
