// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import Foundation
import CountersignTestOrigin
import Testing

/// Enrolments and refreshes that are killed at every call that writes, renames, syncs or removes a file, by strace.
struct RefreshCrashTests {
    /// What has been written, renamed, synced and removed by a whole run, at least. Strace counts the calls of each thread, and on a
    /// busy machine some of the writes and removals may be those of another.
    @Test(arguments: [("rename", 7), ("fsync", 12), ("write", 5), ("unlink", 5), ("ftruncate", 1), ("pwrite64", 1)])
    func aRefreshThatIsKilledLeavesAWorkingIdentityAndTheNextOneGoesOn(call: String, least: Int) throws {
        let place = try EnrolledSandbox()
        try #require(try place.enroll().status == 0)
        var count = 1
        while try place.sandbox.isKilled(at: call, count, ["certificate", "refresh", "laptop"]) {
            let comment = Comment(rawValue: "killed at \(call) \(count)")
            let identity = try #require(try place.identity(), comment)
            #expect(identity.leaf.isValid(at: Int64(Date().timeIntervalSince1970)), comment)
            #expect(try place.isVerified(), comment)
            let pending = try place.vault.contents.pendingEnrollments["laptop"]
            let issued = place.server.requests("simplereenroll").count

            let next = try place.refresh("laptop")
            #expect(next.status == 0, "\(call) \(count): \(next.said)")
            let now = try #require(try place.identity(), comment)
            #expect(try now.leaf == place.leaf() && now.leaf != identity.leaf, comment)
            #expect(try place.isVerified(), comment)
            #expect(try place.vault.contents.pendingEnrollments.isEmpty, comment)
            if let pending {
                // The key is the one that was asked for, and a chain that was issued is not asked for again.
                #expect(try now.key.pkcs8 == pending.privateKey, comment)
                let again = place.server.requests("simplereenroll").count - issued
                #expect(again == (pending.state == .requested ? 1 : 0), comment)
            }
            count += 1
            try #require(count < 60)
        }
        #expect(count > least, "\(call): \(count - 1)")
    }

    @Test(arguments: [("rename", 7), ("fsync", 12)])
    func anEnrolmentThatIsKilledLeavesNothingHalfAndTheNextRunGoesOn(call: String, least: Int) throws {
        let place = try EnrolledSandbox()
        let enrolling = [
            "certificate", "enroll", "laptop", "--est", place.server.address(), "--anchor",
            place.server.certificate("ca"),
        ]
        var count = 1
        while try place.sandbox.isKilled(at: call, count, enrolling) {
            let comment = Comment(rawValue: "killed at \(call) \(count)")
            let contents = try place.vault.contents
            // A key without its chain, or a chain without its key, is nowhere.
            #expect((contents.identityKeys["laptop"] == nil) == (try place.identity() == nil), comment)
            let listed = try place.sandbox.countersign("certificate", "list")
            #expect(!listed.error.contains("left out"), "\(call) \(count): \(listed.said)")

            let next = contents.identityKeys["laptop"] == nil ? try place.enroll() : try place.refresh("laptop")
            #expect(next.status == 0, "\(call) \(count): \(next.said)")
            #expect(try place.identity()?.leaf == place.leaf(), comment)
            #expect(try place.isVerified(), comment)
            try place.sandbox.succeed("certificate", "remove", "laptop")
            count += 1
            try #require(count < 60)
        }
        #expect(count > least, "\(call): \(count - 1)")
    }
}
