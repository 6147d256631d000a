// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignTestOrigin
import Foundation
import Synchronization

@testable import CountersignOAuth

/// A key of the provider. The openssl command makes it and signs with it.
final class SigningKey: Sendable {
    let identifier: String
    /// The members of the JSON Web Key without `kid`.
    let members: String
    private let path: String

    private static let folder = Result { try TemporaryFolder("oauth") }
    private static let counter = Mutex(0)

    /// Arguments of `openssl genpkey`.
    static let rsa = ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]
    static func ec(_ curve: String) -> [String] { ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:\(curve)"] }
    static let ed25519 = ["-algorithm", "ED25519"]

    /// The key that most tests use: on P-256, because that signs fast.
    static let shared = Result { try SigningKey("key-1", ec("P-256")) }

    init(_ identifier: String, _ generation: [String]) throws {
        self.identifier = identifier
        path = try Self.folder.get().file("key-\(Self.number())")
        _ = try Self.openssl(["genpkey", "-quiet"] + generation + ["-out", path])
        _ = try Self.openssl(["pkey", "-in", path, "-pubout", "-outform", "DER", "-out", path + ".pub"])
        let der = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path + ".pub")))
        switch generation[1] {
        case "RSA":
            let text = try Self.openssl(["rsa", "-in", path, "-noout", "-modulus"])
            let digits = text.split(separator: "=")[1].prefix { $0 != "\n" }
            guard let modulus = Hex.decode(digits) else { throw Unexpected(text) }
            members = #""kty":"RSA","n":"\#(Base64URL.encode(modulus))","e":"AQAB""#
        case "EC":
            let curve = generation[3].split(separator: ":")[1]
            let count = curve == "P-521" ? 66 : curve == "P-384" ? 48 : 32
            let point = der.suffix(2 * count)
            members = """
                "kty":"EC","crv":"\(curve)","x":"\(Base64URL.encode(point.prefix(count)))",\
                "y":"\(Base64URL.encode(point.suffix(count)))"
                """
        default:
            members = #""kty":"OKP","crv":"Ed25519","x":"\#(Base64URL.encode(der.suffix(32)))""#
        }
    }

    /// The key as a JSON Web Key. `more` begins with a comma.
    func key(_ more: String = #","use":"sig""#) -> String { #"{"kid":"\#(identifier)",\#(members)\#(more)}"# }

    /// The public key in PEM.
    func publicPEM() throws -> String { try Self.openssl(["pkey", "-in", path, "-pubout"]) }

    /// The compact JWS of both texts.
    func sign(_ header: String, _ payload: String, as algorithm: SignatureAlgorithm) throws -> String {
        let input = Base64URL.encode(Array(header.utf8)) + "." + Base64URL.encode(Array(payload.utf8))
        let name = "sign-\(Self.number())"
        let file = try Self.folder.get().write(name, input)
        let hash = "-sha" + algorithm.rawValue.suffix(3)
        var arguments = ["dgst", hash, "-sign", path, "-out", file + ".sig"]
        switch algorithm {
        case .ps256, .ps384, .ps512:
            arguments += ["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:digest"]
        case .edDSA:
            arguments = ["pkeyutl", "-sign", "-rawin", "-inkey", path, "-in", file, "-out", file + ".sig"]
        case .rs256, .rs384, .rs512, .es256, .es384, .es512: break
        }
        _ = try Self.openssl(arguments + (algorithm == .edDSA ? [] : [file]))
        var signature = [UInt8](try Data(contentsOf: URL(fileURLWithPath: file + ".sig")))
        if let count = [SignatureAlgorithm.es256: 32, .es384: 48, .es512: 66][algorithm] {
            signature = try Self.rawSignature(signature, count)
        }
        return input + "." + Base64URL.encode(signature)
    }

    /// An ID token with this key's `kid`.
    func token(_ claims: String, as algorithm: SignatureAlgorithm = .es256) throws -> String {
        try sign(#"{"alg":"\#(algorithm.rawValue)","kid":"\#(identifier)","typ":"JWT"}"#, claims, as: algorithm)
    }

    /// Both numbers of an ECDSA-Sig-Value (RFC 3279 §2.2.3), each in `count` bytes.
    private static func rawSignature(_ der: [UInt8], _ count: Int) throws -> [UInt8] {
        var rest = der[...]
        func item() throws -> ArraySlice<UInt8> {
            guard rest.popFirst() != nil, var length = rest.popFirst().map(Int.init) else { throw Unexpected(der) }
            if length == 0x81, let next = rest.popFirst() { length = Int(next) }
            let content = rest.prefix(length)
            rest = rest.dropFirst(length)
            return content
        }
        rest = try item()
        let numbers = [try item(), try item()]
        return numbers.flatMap { number in
            let digits = number.drop { $0 == 0 }
            return [UInt8](repeating: 0, count: count - digits.count) + digits
        }
    }

    private static func number() -> Int {
        counter.withLock { count in
            count += 1
            return count
        }
    }

    private static func openssl(_ arguments: [String]) throws -> String {
        let result = try Command.run(try Tool.path("openssl"), arguments, in: try folder.get())
        guard result.status == 0 else { throw Unexpected(result.said) }
        return result.output
    }
}

extension KeySet {
    /// A key set with these JSON Web Keys.
    init(_ keys: String...) throws { try self.init(parsing: Array(Self.text(keys).utf8)) }

    static func text(_ keys: [String]) -> String { #"{"keys":[\#(keys.joined(separator: ","))]}"# }
}
