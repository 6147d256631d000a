// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

@testable import CountersignCLI

/// The settings of px, cntlm and alpaca, in the formats of their own example files.
@Suite struct MigrationPlanTests {
    private func plan(_ text: String, _ product: ForeignProduct) throws -> MigrationPlan {
        try MigrationPlan.read(Array(text.utf8), of: product, in: "/etc/proxy")
    }

    private func problems(_ text: String, _ product: ForeignProduct) -> [ForeignProblem] {
        do throws(ForeignFault) {
            _ = try MigrationPlan.read(Array(text.utf8), of: product, in: "/etc/proxy")
            return []
        } catch {
            return error.problems
        }
    }

    private func options(_ plan: MigrationPlan) -> [String] { plan.options.map { "\($0.name)=\($0.value)" } }

    private static let cntlm = """
        #
        # Cntlm Authentication Proxy Configuration
        #
        Username\ttestuser
        Domain\t\tcorp-uk
        Password\t"canary#1 x"
        PassNTLMv2      D5826E9C665C37C80B53397D5C07BBCB
        Proxy\t\t10.0.0.41:8080  # the first
        Proxy\t\t10.0.0.42:8080
        NoProxy\t\tlocalhost, 127.0.0.*, 10.*, *.corp.example, web*
        Listen\t\t127.0.0.1:3129
        ;Gateway\tyes
        SOCKS5User\tdave:canary
        Prxy\tx:1

        """

    @Test func cntlmGivesParentsExceptionsAddressAndAccount() throws {
        let plan = try plan(Self.cntlm, .cntlm)
        #expect(
            options(plan) == [
                "listen=127.0.0.1:3129", "parent=http://10.0.0.41:8080,http://10.0.0.42:8080",
                "no-proxy=localhost,127.0.0.0/24,10.0.0.0/8,corp.example",
            ])
        #expect(
            plan.siteLines == [
                "proxy://10.0.0.41:8080 answer=ntlm credential=parent plaintext=yes",
                "proxy://10.0.0.42:8080 answer=ntlm credential=parent plaintext=yes",
            ])
        #expect(plan.credentialUser == "corp-uk\\testuser")
        #expect(plan.password?.line == 6)
        #expect(plan.password.map { Array($0.value) } == Array("canary#1 x".utf8))
        let left = plan.findings.filter { !$0.isTaken }
        #expect(left.map(\.key) == ["PassNTLMv2", "NoProxy", "SOCKS5User", "Prxy"])
        #expect(left.map(\.line) == [7, 10, 13, 14])
        #expect(left.last?.text == "cntlm has no such key; did you mean Proxy?")
        #expect(!plan.findings.contains { $0.text.contains("canary") })
    }

    @Test func cntlmAnswersWithKerberosIfItDid() throws {
        let plan = try plan("Auth GSS\nProxy p.corp.example:8080\nPac proxy.pac\n", .cntlm)
        #expect(options(plan) == ["parent=pac:/etc/proxy/proxy.pac,http://p.corp.example:8080"])
        #expect(plan.siteLines == ["proxy://p.corp.example:8080 answer=negotiate"])
    }

    /// Without an account there is nothing to answer NTLM with.
    @Test func cntlmWithoutAnAccountListsNothing() throws {
        #expect(try plan("Proxy p.corp.example:8080\n", .cntlm).siteLines.isEmpty)
    }

    private static let px = """
        [proxy]

        ; NTLM server(s) to connect through. IP:port, hostname:port
        server = proxy1.corp.example:8080,
            proxy2.corp.example:80
        pac =
        listen = 127.0.0.1
        port = 3129
        gateway = 0
        allow = *.*.*.*
        NoProxy: 127.0.0.1,192.168.0.1-192.168.0.255,10.0.0.*, example.com
        username = ACME\\\\jdoe
        auth =

        [client]
        client_auth = NONE

        [settings]
        workers = 2

        """

    @Test func pxGivesParentsExceptionsAddressAndAccount() throws {
        let plan = try plan(Self.px, .px)
        #expect(
            options(plan) == [
                "listen=127.0.0.1:3129", "parent=http://proxy1.corp.example:8080,http://proxy2.corp.example:80",
                "no-proxy=127.0.0.1,10.0.0.0/24,example.com",
            ])
        #expect(
            plan.siteLines.first
                == "proxy://proxy1.corp.example:8080 answer=negotiate,ntlm,digest credential=parent plaintext=yes")
        #expect(plan.credentialUser == "ACME\\jdoe")
        #expect(plan.findings.filter { !$0.isTaken }.map(\.key) == ["allow", "NoProxy", "client_auth", "workers"])
    }

    @Test(arguments: [
        ("NTLM", "ntlm"), ("ANY", "negotiate,ntlm,digest,basic"), ("ANYSAFE", "negotiate,ntlm,digest"),
        ("NONTLM", "negotiate,digest,basic"), ("SAFENONTLM", "negotiate,digest"), ("ONLYBASIC", "basic"),
        ("kerberos", "negotiate"), ("NONE", ""),
    ])
    func pxNamesItsSchemesAsCurlDoes(word: String, answer: String) throws {
        let plan = try plan("[proxy]\nserver = p:1\nusername = u\nauth = \(word)\n", .px)
        #expect(plan.answer.joined(separator: ",") == answer)
        #expect(plan.siteLines.isEmpty == answer.isEmpty)
    }

    @Test func pxUsesTheScriptOnlyWithoutAServer() throws {
        let script = "[proxy]\npac = http://pac.corp.example/proxy.pac\n"
        #expect(options(try plan(script, .px)) == ["parent=pac:http://pac.corp.example/proxy.pac"])
        #expect(options(try plan(script + "server = p:1\n", .px)) == ["parent=http://p:1"])
        #expect(options(try plan("[proxy]\nserver =\n", .px)) == ["parent=system"])
    }

    /// ConfigParser continues a value only in a line that is indented more than its key.
    @Test func indentedKeysOfPxAreKeys() throws {
        let plan = try plan(
            "[proxy]\n  server = proxy.corp.example\n  noproxy = 10.*;a.example\n  auth = NTLM\n[settings]\n    log = 0\n",
            .px)
        #expect(options(plan) == ["parent=http://proxy.corp.example:80", "no-proxy=10.0.0.0/8,a.example"])
        #expect(plan.answer == ["ntlm"] && plan.findings.last?.key == "log")
    }

    @Test(arguments: [
        "[ -d ~/bin ] && PATH=~/bin:$PATH\nalpaca \\\n  -C /etc/p.pac \\\n  -p 3130\n",
        "[Service]\nType=simple\nExecStart=/usr/bin/alpaca -C /etc/p.pac -p 3130\n",
    ])
    func alpacasCommandMayHaveSeveralLinesOrBeInAUnit(text: String) throws {
        #expect(ForeignProduct.detect(try ForeignFile.lines(Array(text.utf8))) == .alpaca)
        #expect(options(try plan(text, .alpaca)) == ["listen=127.0.0.1:3130", "parent=pac:/etc/p.pac"])
    }

    @Test func theTicketNeedsNoCredential() throws {
        let plan = try plan("[proxy]\nserver = p:1\nusername = jdoe\nauth = NEGOTIATE\n", .px)
        #expect(plan.siteLines == ["proxy://p:1 answer=negotiate"])
    }

    @Test func alpacaGivesItsScriptAddressAndAccount() throws {
        let plan = try plan(
            """
            # Add this to your ~/.profile (or equivalent) and restart your shell
            PATH="$HOME/bin:$PATH"
            NTLM_CREDENTIALS="jdoe@ACME:823893adfad2cda6e1a414f3ebdf58f7"; export NTLM_CREDENTIALS
            export http_proxy=localhost:3130
            if true; then /usr/bin/alpaca -C=http://pac.corp.example/proxy.pac --p 3130 & fi

            """, .alpaca)
        #expect(options(plan) == ["listen=127.0.0.1:3130", "parent=pac:http://pac.corp.example/proxy.pac"])
        #expect(plan.siteLines.isEmpty && plan.credentialUser == "ACME\\jdoe" && plan.password == nil)
        #expect(!plan.findings.contains { $0.text.contains("823893") })
    }

    @Test func alpacasFlagsMayBeInAVariableAndItsPasswordInAnother() throws {
        let plan = try plan("ALPACA_ARGS='-C /etc/p.pac -d ACME'\nBASIC_CREDENTIALS=jdoe:can:ary\n", .alpaca)
        #expect(options(plan) == ["parent=pac:/etc/p.pac"])
        #expect(plan.credentialUser == "ACME\\jdoe")
        #expect(plan.password.map { Array($0.value) } == Array("can:ary".utf8))
    }

    @Test(arguments: [
        (ForeignProduct.cntlm, "Proxy x\n", 1, "the proxy \"x\" has no port"),
        (.cntlm, "Proxy a:80\nListen 99999\n", 2, "\"99999\" is not a port from 1 to 65535"),
        (
            .cntlm, "Proxy a:80\n\nUsername \"canary\n", 3,
            "the quotation mark in the value of \"Username\" is not closed"
        ),
        (.cntlm, "Proxy = a:80\n", 1, "\"Proxy\" has a =, which would belong to the value"),
        (.cntlm, "Proxy a:80\nAuth foo\n", 2, "\"foo\" is no method of cntlm"),
        (.cntlm, "Proxy a:80\nNoProxy a,*\n", 2, "* stands beside other hosts"),
        (.cntlm, "Proxy a:80\nNoProxy *\nNoProxy a\n", 3, "* stands beside other hosts"),
        (.px, "[proxy]\nport = 3128\n  password = canary\n", 2, "the value is not a port from 1 to 65535"),
        (.cntlm, "Username x\n", 0, "no line names a parent: there is neither Proxy nor Pac"),
        (.cntlm, "Proxy jdoe:canary@h:80\n", 1, "a user name or password is not allowed in the address of a proxy"),
        (.px, "server = a:80\n", 1, "\"server\" stands before the first section"),
        (.px, "[proxy]\nserver = a:80\nServer = b:80\n", 3, "\"Server\" is already in line 2"),
        (.px, "[proxy]\nfoo\n", 2, "neither a section nor a key with a value"),
        (.px, "[proxy]\nport = x\n", 2, "\"x\" is not a port from 1 to 65535"),
        (.px, "[proxy]\npac = C:\\p.pac\n", 2, "\"C:\\p.pac\" is a path of Windows"),
        (.alpaca, "x=1\n", 0, "no line has a variable or flag of alpaca"),
        (.alpaca, "NTLM_CREDENTIALS=canary\n", 1, "NTLM_CREDENTIALS is not of the form USER@DOMAIN:HASH"),
        (.alpaca, "\nBASIC_CREDENTIALS='canary\n", 2, "a quotation mark is not closed"),
        (.alpaca, "alpaca -z\n", 1, "alpaca has no flag \"-z\""),
    ])
    func faultsNameTheLine(product: ForeignProduct, text: String, line: Int, reason: String) {
        let found = problems(text, product)
        #expect(found.first?.line == line && found.first?.reason == reason, "\(found)")
        #expect(found.first?.hint != nil)
        #expect(!found.contains { $0.reason.contains("canary") || $0.hint?.contains("canary") == true })
    }

    @Test func allFaultsAreFoundAtOnce() {
        #expect(problems("Proxy x\nListen y\nAuth z\n", .cntlm).map(\.line) == [1, 2, 3])
    }

    @Test(arguments: [
        ("[proxy]\nserver=\n", ForeignProduct.px), ("# x\r\nProxy\t10.0.0.1:80\r\n", .cntlm),
        ("export PATH=/bin\nexport NTLM_CREDENTIALS=x\n", .alpaca), ("hello\n", nil),
    ])
    func theContentsNameTheProduct(text: String, product: ForeignProduct?) throws {
        #expect(ForeignProduct.detect(try ForeignFile.lines(Array(text.utf8))) == product)
    }

    @Test(arguments: [
        ("10.*", "10.0.0.0/8"), ("192.168.*.*", "192.168.0.0/16"), ("*.a.example", "a.example"), ("*", "*"),
        (".a.example", ".a.example"), ("10.0.0.0/8", "10.0.0.0/8"), ("<local>", nil), ("a*.example", nil),
        ("1.2.3.4-1.2.3.9", nil), ("300.*", nil),
    ])
    func exceptionsAreTranslated(element: String, translated: String?) {
        switch NoProxyTranslation.translate(element) {
        case .taken(let text): #expect(text == translated)
        case .left: #expect(translated == nil)
        }
    }
}

/// `countersign migrate` and files that it cannot read.
@Suite(.waiting) struct MigrationFileTests {
    /// Root reads every file unless it gives up that right.
    @Test func aFileThatMayNotBeReadComesFromStandardInput() throws {
        let sandbox = try Sandbox()
        let file = try sandbox.folder.write("cntlm file.conf", "Proxy p.corp.example:8080\n")
        try #require(chmod(file, 0) == 0)
        let limits =
            getuid() == 0 ? "setpriv --bounding-set=-dac_override,-dac_read_search --inh-caps=-all " : ""
        let refused = try sandbox.sh("\(limits)countersign migrate '\(file)'")
        #expect(refused.status == 1 && refused.error.contains("may not be read by your user"), "\(refused.said)")
        #expect(refused.error.contains("hint: `sudo cat '\(file)' | countersign migrate -`"), "\(refused.said)")
        let absent = try sandbox.sh("countersign migrate nothing.conf")
        #expect(absent.status == 1 && absent.error.contains("there is no file"), "\(absent.said)")
    }
}
