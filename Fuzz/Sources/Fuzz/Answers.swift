// SPDX-License-Identifier: Apache-2.0
import CountersignChallenges
import CountersignNTLM
import CountersignSPNEGO
import CountersignSitePolicy

/// Each line of the input is one field value.
@Sendable func challenges(_ input: [UInt8]) {
    let fields = input.split(separator: 0x0A, omittingEmptySubsequences: false).map {
        String(decoding: $0, as: UTF8.self)
    }
    guard let challenges = try? ChallengeParser.parse(fields: fields) else { return }
    for challenge in challenges {
        precondition(!challenge.scheme.isEmpty)
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
