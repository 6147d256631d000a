// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography

extension RecordFormat {
    /// What answers challenges and signs requests.
    static let credentials: [RecordFormat] = [
        named(.password, { $0.credentials }) { writer, name, credential in
            writer.field(name)
            writer.field(credential.user)
            writer.field(credential.password)
            // Every credential in the vault has a generation.
            writer.append(credential.generation ?? 0)
        } read: { name, body, parts throws(VaultError) in
            let user = try body.text()
            let password = try body.secret(upTo: VaultLimits.passwordBytes)
            let generation = try parts.generation(in: &body)
            guard VaultLimits.isUser(user) else { throw RecordReader.malformed("a user name") }
            parts.credentials[name] = PasswordCredential(
                name: name, user: user, password: password, generation: generation)
        },
        named(.bearerToken, { $0.tokens }) { writer, name, token in
            writer.field(name)
            writer.field(token.stored)
            // Every token in the vault has a generation.
            writer.append(token.generation ?? 0)
        } read: { name, body, parts throws(VaultError) in
            let token = try body.secret(upTo: VaultLimits.passwordBytes)
            let generation = try parts.generation(in: &body)
            try parts.checkIsNewCredential(name)
            guard TokenCredential.isStorable(token) else { throw RecordReader.malformed("a token") }
            parts.tokens[name] = TokenCredential(name: name, token: token, generation: generation)
        },
        named(.principal, { $0.principals }) {
            $0.append($2)
        } read: { name, body, parts throws(VaultError) in
            let credential = try body.principal(named: name, writtenIn: parts.generation)
            try parts.checkIsNewCredential(name)
            parts.principals[name] = credential
        },
        named(.program, { $0.programs.filter { $0.value.written != .awsKeys } }) {
            $0.append($2)
        } read: { name, body, parts throws(VaultError) in
            try parts.checkIsNewCredential(name)
            parts.programs[name] = try body.program(
                named: name, writesAWSKeys: false, writtenIn: parts.generation)
        },
        named(.awsKeys, { $0.awsKeys }) {
            $0.append($2)
        } read: { name, body, parts throws(VaultError) in
            try parts.checkIsNewCredential(name)
            parts.awsKeys[name] = try body.awsKeys(named: name, writtenIn: parts.generation)
        },
        named(.programOfAWSKeys, { $0.programs.filter { $0.value.written == .awsKeys } }) {
            $0.append($2)
        } read: { name, body, parts throws(VaultError) in
            try parts.checkIsNewCredential(name)
            parts.programs[name] = try body.program(named: name, writesAWSKeys: true, writtenIn: parts.generation)
        },
    ]
}

extension RecordWriter {
    mutating func append(_ credential: PrincipalCredential) {
        field(credential.name)
        field(credential.principal)
        if case .keys = credential.proof { append(1 as UInt8) } else { append(0 as UInt8) }
        field(credential.proof.secret)
        // Every credential in the vault has a generation.
        append(credential.generation ?? 0)
    }
}

extension RecordReader {
    /// The fields after the name.
    mutating func principal(
        named name: String, writtenIn vaultGeneration: UInt64
    ) throws(VaultError) -> PrincipalCredential {
        let principal = try text()
        let hasKeys = try flag()
        let secret = try secret(upTo: VaultLimits.passwordBytes)
        let generation = try number(UInt64.self)
        guard generation <= vaultGeneration else { throw Self.malformed("a principal's generation") }
        guard VaultLimits.isPrincipal(principal) else { throw Self.malformed("a principal") }
        return PrincipalCredential(
            name: name, principal: principal, proof: hasKeys ? .keys(secret) : .password(secret),
            source: .vault(generation: generation))
    }
}
