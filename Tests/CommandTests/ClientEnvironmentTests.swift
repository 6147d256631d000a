// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignHome
import CountersignTestOrigin
import Foundation
import Testing

@testable import Countersign
@testable import CountersignClientSetup

/// The variables, as the programs read them.
@Suite(.waiting) struct ClientEnvironmentTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("environment") }

    private func environment(token: String? = nil, inherited: [String: String] = [:]) -> ClientEnvironment {
        ClientEnvironment(
            proxy: .init(host: "127.0.0.1", port: 3128, token: token), bundlePath: "/home/bundle.pem",
            javaBundlePath: "/home/bundle.p12", inherited: inherited)
    }

    @Test
    func eachVariableIsSetOnceAndNotAlsoUnset() {
        let names = environment().set.map(\.name)
        #expect(Set(names).count == names.count)
        #expect(Set(names).isDisjoint(with: ClientEnvironment.unset))
    }

    @Test
    func tokenIsInTheProxyURLButNotInTheJavaOptions() {
        let set = Dictionary(uniqueKeysWithValues: environment(token: "canary").set)
        #expect(set["https_proxy"] == "http://countersign:canary@127.0.0.1:3128")
        // The Java runtime prints this variable to standard error when it starts.
        #expect(set["JAVA_TOOL_OPTIONS"]?.contains("canary") == false)
        #expect(set["JAVA_TOOL_OPTIONS"]?.contains("-Djdk.http.auth.tunneling.disabledSchemes= ") == true)
    }

    // MARK: Java

    private func options(_ trustStore: String, after inherited: String? = nil) -> String {
        JavaOptions(
            trustStore: trustStore, host: "::1", port: 8080, asksForPassword: false, after: inherited
        ).text
    }

    /// The system properties that a Java runtime reports when started with the options.
    private func properties(_ options: String) throws -> [String: String] {
        let result = try Command.run(
            Tool.path("java"), ["-XshowSettings:properties", "-version"],
            environment: ["PATH": "/usr/bin:/bin", "JAVA_TOOL_OPTIONS": options], in: folder)
        guard result.status == 0 else { throw HarnessError(result.said) }
        var properties: [String: String] = [:]
        for line in result.error.split(separator: "\n") {
            guard let equals = line.firstRange(of: " = ") else { continue }
            let name = line[..<equals.lowerBound].trimmingCharacters(in: .whitespaces)
            properties[name] = String(line[equals.upperBound...])
        }
        return properties
    }

    @Test(arguments: [
        "/home/bundle.p12", "/a home/bundle.p12", "/it's a home/b.p12", "/\"quoted\" it's/b.p12", "/''/b",
    ])
    func javaReadsPathsWithSpecialCharacters(_ path: String) throws {
        let properties = try properties(options(path))
        #expect(properties["javax.net.ssl.trustStore"] == path)
        #expect(properties["javax.net.ssl.trustStoreType"] == "PKCS12")
        #expect(properties["https.proxyHost"] == "::1" && properties["https.proxyPort"] == "8080")
        #expect(properties["http.proxyHost"] == "::1" && properties["http.proxyPort"] == "8080")
        #expect(properties["http.nonProxyHosts"]?.trimmingCharacters(in: .whitespaces) == "")
    }

    @Test(arguments: ["/home/bundle.p12", "/it's a home/b.p12"])
    func existingJavaOptionsAreKeptAndOursAddedOnce(_ path: String) throws {
        let once = options(path, after: "-Xmx64m  -Dx=y")
        #expect(once.hasPrefix("-Xmx64m -Dx=y ") || once.hasPrefix("-Xmx64m  -Dx=y "))
        #expect(options(path, after: once) == once)
        #expect(options(path, after: once + " -Dz=1").hasPrefix("-Xmx64m -Dx=y -Dz=1 "))
        #expect(try properties(once)["x"] == "y")
    }

    /// All Java runtimes on this machine.
    private static let keytools = {
        let folder = "/usr/lib/jvm"
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return names.map { (name: String) -> String in "\(folder)/\(name)/bin/keytool" }.filter {
            access($0, X_OK) == 0
        }.sorted()
    }()

    @Test
    func javaTrustsAllAnchorsInTheBundle() throws {
        #expect(!Self.keytools.isEmpty, "there is no Java: run Scripts/test")
        let home = Home(path: folder.file("home"))
        let root = try InterceptionAuthority.create(at: Int64(time(nil))).root
        let anchor = try #require(try Certificate.readPEM(TextFile.bytes(Tool.fixture("origin-root.pem"))).first)
        // Also contains an anchor that the system already has.
        let system = try folder.write("system.pem", anchor.pem + TextFile.text(Tool.fixture("client-a-root.pem")))
        try TrustBundle(home: home, environment: ["SSL_CERT_FILE": system]).write(root: root, anchors: [anchor])
        for keytool in Self.keytools {
            let list = try Command.run(
                keytool, ["-list", "-v", "-keystore", home.javaBundle.path, "-storepass", ""],
                environment: ["LC_ALL": "C"], in: folder)
            #expect(list.output.contains("Your keystore contains 3 entries"), "\(list.said)")
            #expect(list.output.components(separatedBy: "Entry type: trustedCertEntry").count == 4)
            let fingerprint = root.sha256Fingerprint.map { byte in String(format: "%02X", Int(byte)) }.joined(
                separator: ":")
            #expect(list.output.contains("SHA256: \(fingerprint)"))
        }
        // The same file, read by OpenSSL.
        let shown = try Command.run(
            Tool.path("openssl"), ["pkcs12", "-in", home.javaBundle.path, "-nokeys", "-nomacver", "-passin", "pass:"],
            in: folder)
        #expect(shown.output.components(separatedBy: "BEGIN CERTIFICATE").count == 4, "\(shown.said)")
    }
}
