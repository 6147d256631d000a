// SPDX-License-Identifier: Apache-2.0

package import CountersignChallenges
package import CountersignCryptography
package import CountersignHome

extension ProgramSecret {
    /// The keys of AWS that the program writes as a `credential_process` (see ``AWSKeys/init(processOutput:)``). `now`
    /// is in seconds since 1970. Throws `environment`, also for keys that have expired. The error names the program.
    package func readAWSKeys(now: Int64) throws(CountersignError) -> AWSKeys {
        try Self.awsKeys(in: try whole(), from: program, now: now)
    }

    /// The same for a text that `source` has written.
    package static func awsKeys(in text: Secret, from source: String, now: Int64) throws(CountersignError) -> AWSKeys {
        let keys: AWSKeys
        do throws(AWSKeys.Fault) {
            keys = try AWSKeys(processOutput: text)
        } catch {
            throw CountersignError(
                .environment, "\(source): \(error.detail)",
                hint: "`aws configure export-credentials` writes keys in this form")
        }
        if let expires = keys.expires, keys.haveExpired(at: now) {
            throw CountersignError(
                .environment, "\(source): the keys have expired at \(WallClock.rfc3339(expires))",
                hint: "get new ones, for example with `aws sso login`")
        }
        return keys
    }
}
