// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignTestOrigin
import Foundation
import Testing

/// Enrolments and refreshes that strace kills at each call that writes, renames, syncs or removes a file.
@Suite(.waiting) struct RefreshCrashTests {
    /// `least` is the minimum number of writes, renames, syncs and removals in a complete run.
    @Test(arguments: [("rename", 7), ("fsync", 12), ("write", 5), ("unlink", 5), ("ftruncate", 1), ("pwrite64", 1)])
    func killedRefreshLeavesAWorkingIdentityAndTheNextContinues(call: String, least: Int) throws {
        let place = try EnrolledSandbox()
        try #require(try place.enroll().status == 0)
        var count = 1
        while true {
            if let calls = try place.sandbox.callsUnlessKilled(at: call, count, ["certificate", "refresh", "laptop"]) {
                #expect(count > 1 && calls >= least, "\(call): \(calls)")
                break
            }
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
                // The key is the requested one, and a chain that was issued is not requested again.
                #expect(try now.key.pkcs8 == pending.privateKey, comment)
                let again = place.server.requests("simplereenroll").count - issued
                #expect(again == (pending.state == .requested ? 1 : 0), comment)
            }
            count += 1
            try #require(count < 60)
        }
    }

    @Test(arguments: [("rename", 7), ("fsync", 12)])
    func killedEnrolmentLeavesNothingPartialAndTheNextContinues(call: String, least: Int) throws {
        let place = try EnrolledSandbox()
        let enrolling = [
            "certificate", "enroll", "laptop", "--est", place.server.address(), "--anchor",
            place.server.certificate("ca"),
        ]
        var count = 1
        while true {
            if let calls = try place.sandbox.callsUnlessKilled(at: call, count, enrolling) {
                #expect(count > 1 && calls >= least, "\(call): \(calls)")
                break
            }
            let comment = Comment(rawValue: "killed at \(call) \(count)")
            let contents = try place.vault.contents
            // There is no key without its chain and no chain without its key.
            #expect((contents.identityKeys["laptop"] == nil) == (try place.identity() == nil), comment)
            let listed = try place.sandbox.countersign("certificate", "list")
            #expect(!listed.error.contains("is not listed"), "\(call) \(count): \(listed.said)")

            let next = contents.identityKeys["laptop"] == nil ? try place.enroll() : try place.refresh("laptop")
            #expect(next.status == 0, "\(call) \(count): \(next.said)")
            #expect(try place.identity()?.leaf == place.leaf(), comment)
            #expect(try place.isVerified(), comment)
            try place.sandbox.succeed("certificate", "remove", "laptop")
            count += 1
            try #require(count < 60)
        }
    }
}
