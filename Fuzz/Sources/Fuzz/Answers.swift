// SPDX-License-Identifier: Apache-2.0
import CountersignAddresses
import CountersignChallenges
import CountersignCryptography
import CountersignNTLM
import CountersignNegotiate
import CountersignSPNEGO
import CountersignSitePolicy
import Glibc

/// Each line of the input is one field value.
@Sendable func challenges(_ input: [UInt8]) {
    let fields = input.split(separator: 0x0A, omittingEmptySubsequences: false).map { ChallengeField(octets: $0) }
    guard let challenges = try? ChallengeParser.parse(fields: fields) else { return }
    for challenge in challenges {
        precondition(!challenge.scheme.isEmpty)
        let names = challenge.parameters.map { $0.name.lowercased() }
        precondition(Set(names).count == names.count, "a parameter twice")
        precondition(challenge.token68 == nil || names.isEmpty, "a token68 beside parameters")
        // A scope is repeated in response fields and logs.
        if case .insufficientScope(let scope?) = BearerError(challenge) {
            precondition(scope.utf8.count <= 203 && scope.unicodeScalars.allSatisfy { $0.value >= 0x20 })
        }
    }
}

/// Serialising and parsing a valid message gives the same message.
@Sendable func ntlmChallenge(_ input: [UInt8]) {
    guard let message = try? ChallengeMessage(parsing: input) else { return }
    guard let written = try? message.serialized() else { return }
    precondition((try? ChallengeMessage(parsing: written)) == message)
}

@Sendable func spnegoToken(_ input: [UInt8]) {
    if let token = try? NegTokenInit(parsing: input) {
        precondition((try? NegTokenInit(parsing: token.serialized)) == token)
    }
    if let token = try? NegTokenResp(parsing: input) {
        precondition((try? NegTokenResp(parsing: token.serialized)) == token)
    }
}

@Sendable func siteList(_ input: [UInt8]) {
    guard let list = try? SiteList(files: [(name: "fuzz.sites", text: String(decoding: input, as: UTF8.self))]) else {
        return
    }
    for rule in list.rules { precondition(rule.location.hasPrefix("fuzz.sites:")) }
}

/// Canonicalising a canonical name does not change it.
@Sendable func hostName(_ input: [UInt8]) {
    guard let name = try? HostName(canonicalizing: String(decoding: input, as: UTF8.self)) else { return }
    precondition((try? HostName(canonicalizing: name.description)) == name)
}

/// Each line of the input is an `Authentication-Info` field of the response to a request with a Digest answer. Nothing
/// in it breaks the field of the next request.
@Sendable func authenticationInfo(_ input: [UInt8]) {
    let fields = input.split(separator: 0x0A, omittingEmptySubsequences: false).map {
        String(decoding: $0, as: UTF8.self)
    }
    let asked = #"Digest realm="r", nonce="n", qop="auth", algorithm=SHA-256"#
    let context = RequestContext(
        origin: Origin(scheme: .https, host: "a.test", port: 443),
        authenticators: AuthenticatorTable(DigestAuthenticator.strongestFirst), site: .yes("listed"),
        permitted: [.digest], plaintextPermitted: false, clientAuthorizes: false, originTrusted: true, hasBody: false)
    let credential = PasswordCredential(
        name: "enrollment", user: "jdoe", password: Secret(utf8: "secret"), generation: 1)
    let inputs = AnswerInputs(fileTime: 0, random: { [UInt8](repeating: 7, count: $0) })
    var exchange = ExchangeMachine(context)
    _ = exchange.started()
    _ = exchange.responseReceived(status: 401, challengeFields: [ChallengeField(asked)])
    guard case .send(let answer?) = exchange.decisionReceived(.useCredential(.password(credential))),
        let sent = answer.field(for: Request(), inputs)
    else { fatalError("the challenge is not answered") }
    switch exchange.responseReceived(status: 200, challengeFields: [], informationFields: fields, sent: sent) {
    case .deliver(.accepted): break
    case .fail(let failure): precondition(failure.cause == .forgedResponse)
    case .deliver, .send, .sendOpening, .ask, .computeToken, .wait: fatalError("an action that does not belong here")
    }
    guard let next = answer.field(for: Request(), inputs) else { fatalError("the next request is not answered") }
    precondition(next.fieldValue.utf8.allSatisfy { $0 == 0x09 || $0 >= 0x20 && $0 != 0x7F }, "a broken field")
    precondition(next.parameter("uri") == "/" && next.parameter("username") == "jdoe")
}

private struct Request: RequestDescription {
    let method = "GET"
    let target = "/"
    func readContent(_ body: (UnsafeRawBufferPointer) -> Void) -> Bool { true }
}

/// MIT's library reads the file. The keys in it are stored in a form that is read again.
@Sendable func keytab(_ input: [UInt8]) {
    let path = "/dev/shm/countersign-fuzz-\(getpid())"
    let file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0o600)
    precondition(file >= 0 && write(file, input, input.count) == input.count, "no room in /dev/shm")
    close(file)
    defer { unlink(path) }
    do throws(KerberosError) {
        let keys = try KeytabKeys.read(path, of: "jdoe@CORP.TEST")
        let lengths = KeytabKeys.with(keys) { keys in keys.map(\.length) }
        precondition(lengths?.isEmpty == false && lengths?.allSatisfy { (1...65_535).contains($0) } == true)
    } catch {
        precondition(error.code == .keytab, "another error: \(error.sentence)")
    }
    let stored = Secret(input)
    if let lengths = KeytabKeys.with(stored, { keys in keys.map(\.length) }) {
        precondition(lengths.reduce(0) { $0 + 10 + $1 } == input.count)
    }
}
