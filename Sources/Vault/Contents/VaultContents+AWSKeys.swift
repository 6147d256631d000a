// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography

extension VaultContents {
    /// Adds keys of AWS, or replaces those of that name, which get a new generation even if they are the same. Throws
    /// `invalidRecord` for a name that is not valid, and `nameInUse` if a credential of another kind has the name.
    @discardableResult
    package mutating func setAWSKeys(name: String, _ keys: AWSKeys) throws(VaultError) -> AWSCredential {
        try VaultLimits.check(name: name)
        guard credentials[name] == nil else { throw Self.nameInUse(name, by: "a user name and password") }
        guard tokens[name] == nil || signIns[name] != nil else { throw Self.nameInUse(name, by: "a token") }
        guard signIns[name] == nil else { throw Self.signInHasName(name) }
        guard principals[name] == nil else { throw Self.nameInUse(name, by: "a Kerberos principal") }
        try checkProgram(name, writes: .awsKeys)
        advance()
        programs[name] = nil
        let credential = AWSCredential(name: name, keys: keys, generation: generation)
        awsKeys[name] = credential
        return credential
    }
}

extension RecordWriter {
    mutating func append(_ credential: AWSCredential) {
        field(credential.name)
        field(credential.keys.accessKeyID)
        field(credential.keys.secret)
        append(UInt8(credential.keys.sessionToken == nil ? 0 : 1))
        if let token = credential.keys.sessionToken { field(token) }
        append(UInt8(credential.keys.expires == nil ? 0 : 1))
        if let expires = credential.keys.expires { append(UInt64(clamping: expires)) }
        append(credential.generation)
    }
}

extension RecordReader {
    /// The fields after the name.
    mutating func awsKeys(named name: String, writtenIn vaultGeneration: UInt64) throws(VaultError) -> AWSCredential {
        let accessKeyID = try text()
        let secret = try secret(upTo: AWSKeys.secretBytes)
        let sessionToken = try flag() ? try self.secret(upTo: AWSKeys.sessionTokenBytes) : nil
        let expires = try flag() ? try time() : nil
        let generation = try number(UInt64.self)
        guard generation <= vaultGeneration else { throw Self.malformed("a credential's generation") }
        do throws(AWSKeys.Fault) {
            let keys = try AWSKeys(
                accessKeyID: accessKeyID, secret: secret, sessionToken: sessionToken, expires: expires)
            return AWSCredential(name: name, keys: keys, generation: generation)
        } catch {
            throw Self.malformed("keys of AWS")
        }
    }
}
