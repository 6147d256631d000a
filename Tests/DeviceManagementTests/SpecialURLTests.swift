// SPDX-License-Identifier: Apache-2.0
import CountersignAddresses
import CountersignOAuth
import Testing

@testable import CountersignDeviceManagement

enum Enrolment {
    static let redirect = "com.example.app://auth"
    static let state = "S-1"

    static func rules() throws -> SpecialURLRules {
        SpecialURLRules(
            pageOrigins: [try Origin(url: "https://login.example"), try Origin(url: "https://mdm.example")],
            handoffOrigins: [try Origin(url: "https://mdm.example"), try Origin(url: "https://install.example")],
            redirect: try RedirectURI(redirect), requestState: state)
    }

    static func state(_ headers: [(name: String, value: String)] = []) -> InteractiveWebviewState {
        var state = InteractiveWebviewState()
        state.responseHeaders = ResponseHeaders(headers)
        return state
    }

    static func load(_ url: String, _ headers: [AdditionalHeader] = []) throws -> WebviewAction {
        .loadRequest(WebviewRequest(try EndpointURL(url, "url"), headers: headers))
    }

    static func session(
        _ url: String, _ headers: [AdditionalHeader] = [],
        _ purpose: AuthenticationSessionRequest.Purpose = .installProfile, scheme: String = "msauth",
        isEphemeral: Bool = true
    ) throws -> WebviewAction {
        .openAuthenticationSession(
            AuthenticationSessionRequest(
                try EndpointURL(url, "url"), headers: headers, purpose: purpose, callbackScheme: scheme,
                isEphemeral: isEphemeral))
    }

    static func action(_ url: String, _ state: InteractiveWebviewState = state()) throws -> WebviewAction {
        SpecialURLViewActionResolver.action(for: url, state, try rules())
    }
}

extension WebviewAction {
    var failure: DeviceManagementError.Code? {
        if case .fail(let error) = self { error.code } else { nil }
    }
}

@Suite struct SpecialURLTests {
    /// A special URL, and the page that the view loads for it.
    @Test(arguments: [
        // The draft's form.
        ("msauth://enroll?cpurl=https://mdm.example/enroll", "https://mdm.example/enroll"),
        ("msauth://enroll?cpurl=https%3A%2F%2Fmdm.example%2Fenroll%3Fa%3D1", "https://mdm.example/enroll?a=1"),
        ("MSAUTH://ENROLL?cpurl=https://mdm.example/", "https://mdm.example/"),
        ("msauth://enroll/?cpurl=https://mdm.example/e", "https://mdm.example/e"),
        ("msauth://compliance?cpurl=https://login.example/c#top", "https://login.example/c"),
        ("msauth://compliance?cpurl=https://mdm.example:443/c", "https://mdm.example/c"),
        ("msauth://compliance?other=1&cpurl=https://mdm.example/c", "https://mdm.example/c"),
        ("msauth://installProfile?url=https://mdm.example/p", "https://mdm.example/p"),
        (
            "msauth://installProfile?url=https://mdm.example/p&requireASWebAuthenticationSession=false",
            "https://mdm.example/p"
        ),
        // The form that ships.
        (
            "msauth://enroll?intuneRedirectUrl=https://mdm.example/enroll",
            "https://mdm.example/enroll?in-app=true&webauthn=1"
        ),
        (
            "msauth://enroll?intuneRedirectUrl=https://mdm.example/enroll&tenant=t%201",
            "https://mdm.example/enroll?in-app=true&webauthn=1&tenant=t+1"
        ),
        (
            "msauth://enroll?intuneRedirectUrl=https%3A%2F%2Fmdm.example%2Fe%3Fx%3Dy",
            "https://mdm.example/e?x=y&in-app=true&webauthn=1"
        ),
        (
            "msauth://enroll?intuneRedirectUrl=https://mdm.example/e&cpurl=https://mdm.example/other",
            "https://mdm.example/e?in-app=true&webauthn=1&cpurl=https%3A%2F%2Fmdm.example%2Fother"
        ),
        (
            "msauth://compliance?intuneRedirectUrl=https://mdm.example/c&reason=4",
            "https://mdm.example/c?reason=4"
        ),
        (
            "msauth://profile_download_complete?continueUrl=https://mdm.example/next&intuneDeviceId=d-1",
            "https://mdm.example/next"
        ),
        ("msauth://Profile_Download_Complete?continueUrl=https://mdm.example/next", "https://mdm.example/next"),
        (
            "msauth://in_app_enrollment_complete?status=failed&errorUrl=https://mdm.example/why",
            "https://mdm.example/why"
        ),
        (
            "msauth://in_app_enrollment_complete?status=success&errorUrl=https://mdm.example/why",
            "https://mdm.example/why"
        ),
    ])
    func aPageIsLoadedInTheView(url: String, page: String) throws {
        #expect(try Enrolment.action(url) == Enrolment.load(page))
    }

    /// A special URL that ends the view's part.
    @Test(arguments: [
        "msauth://profileInstalled", "msauth://profileComplete", "msauth://profileInstalled?id=4",
        "MSAUTH://ProfileInstalled", "msauth://something-new?x=1", "msauth://code/?code=1",
        "msauth://code/resume?code=1",
        "msauth://msauth/code?code=1", "msauth://compliance_status?status=4", "msauth://host/path/deeper",
    ])
    func theViewCompletes(url: String) throws {
        #expect(try Enrolment.action(url) == .complete(url))
    }

    @Test(arguments: [
        ("msauth:", DeviceManagementError.Code.malformed), ("msauth://", .malformed), ("msauth:enroll", .malformed),
        ("msauth:///enroll", .malformed), ("msauth://?cpurl=https://mdm.example/", .malformed),
        ("msauth://enroll", .malformed), ("msauth://enroll?cpurl=", .malformed),
        ("msauth://compliance?url=x", .malformed),
        ("msauth://enroll?cpurl=https://mdm.example/&cpurl=https://mdm.example/2", .malformed),
        ("msauth://enroll?intuneRedirectUrl=https://mdm.example/&a=1&a=2", .malformed),
        (
            "msauth://in_app_enrollment_complete?errorUrl=https://mdm.example/&errorUrl=https://mdm.example/2",
            .malformed
        ),
        ("msauth://enroll?cpurl=%zz", .malformed), ("msauth://enroll?cpurl=%ff", .malformed),
        ("msauth://user@enroll?cpurl=https://mdm.example/", .malformed),
        ("msauth://enroll:8080?cpurl=https://mdm.example/", .malformed),
        ("msauth://en\\roll?cpurl=https://mdm.example/", .malformed),
        ("msauth://enroll?cpurl=https://mdm.example/\u{E9}", .malformed),
        ("msauth://profile_download_complete", .malformed), ("msauth://installProfile", .malformed),
        ("msauth://compliance_status", .malformed), ("msauth://compliance_status?status=4&status=1", .malformed),
        ("browser://", .malformed), ("browser:///page", .malformed), ("browser://user@host/", .malformed),
        // Pages of others.
        ("msauth://enroll?cpurl=http://mdm.example/", .foreignPage),
        ("msauth://enroll?cpurl=https://evil.example/", .foreignPage),
        ("msauth://enroll?cpurl=https://mdm.example.evil.example/", .foreignPage),
        ("msauth://enroll?cpurl=https://mdm.example:8443/", .foreignPage),
        ("msauth://enroll?cpurl=https://mdm.example@evil.example/", .foreignPage),
        ("msauth://enroll?cpurl=javascript:alert(1)", .foreignPage), ("msauth://enroll?cpurl=/enroll", .foreignPage),
        ("msauth://enroll?cpurl=file:///etc/passwd", .foreignPage),
        ("msauth://enroll?cpurl=//mdm.example/", .foreignPage),
        ("msauth://compliance?intuneRedirectUrl=https://evil.example/", .foreignPage),
        ("msauth://installProfile?url=https://evil.example/p&requireASWebAuthenticationSession=true", .foreignPage),
        ("msauth://profile_download_complete?continueUrl=https://evil.example/", .foreignPage),
        ("msauth://in_app_enrollment_complete?status=failed&errorUrl=https://evil.example/", .foreignPage),
        // Requests that this machine cannot fulfil.
        ("msauth://wpj?username=j&client_info=x", .deviceRegistrationRequired),
        ("msauth://msauth/wpj?username=j", .deviceRegistrationRequired),
        ("msauth://wpj?app_link=https://store.example/", .brokerRequired),
        ("com.example.app://auth/msauth/wpj?username=j", .deviceRegistrationRequired),
        ("com.example.app://auth/msauth/wpj", .deviceRegistrationRequired),
        ("com.example.app://auth/msauth/wpj?app_link=https://store.example/", .brokerRequired),
        ("com.example.app://auth/msauth/upgradeReg?username=j", .strongerRegistrationRequired),
        ("msauth://upgradeReg?username=j", .strongerRegistrationRequired),
        ("msauth://msauth/upgradeReg?username=j", .strongerRegistrationRequired),
        ("msauth://in_app_enrollment_complete?status=success", .brokerRequired),
        ("msauth://in_app_enrollment_complete?status=check_in_timed_out", .brokerRequired),
        ("msauth://in_app_enrollment_complete?status=failed", .enrollmentFailed),
        ("msauth://in_app_enrollment_complete", .enrollmentFailed),
        ("msauth://compliance_status?status=1", .notCompliant),
        ("msauth://jit_troubleshooting", .troubleshootingRequired),
        ("companyportal://enrollment", .brokerRequired),
    ])
    func theSignInFailsWithAName(url: String, code: DeviceManagementError.Code) throws {
        #expect(try Enrolment.action(url).failure == code, "\(url)")
    }

    /// These compare with case, so another spelling is an unknown host.
    @Test(arguments: ["msauth://WPJ?username=j", "msauth://upgradereg", "msauth://Code?code=1"])
    func wpjUpgradeRegAndCodeCompareWithCase(url: String) throws {
        #expect(try Enrolment.action(url) == .complete(url))
    }

    @Test(arguments: [
        "https://login.example/", "msauth.com.example.app://auth?code=1&state=S-1", "com.example.app://auth?code=1",
        "msauths://enroll?cpurl=https://mdm.example/", "about:blank", "", "msauth",
        "com.example.app://auth/msauth/WPJ", "com.example.app://auth/msauth/wpj/more",
        "com.example.other://auth/msauth/wpj",
    ])
    func anyOtherURLIsNotSpecial(url: String) throws {
        #expect(try Enrolment.action(url) == .noop)
    }

    @Test func aURLThatIsTooLongFails() throws {
        let url = "msauth://enroll?cpurl=https://mdm.example/" + String(repeating: "a", count: SpecialURL.maximumBytes)
        #expect(try Enrolment.action(url).failure == .malformed)
    }

    // MARK: Profiles

    @Test func aProfileIsInstalledInAnEphemeralSession() throws {
        let url = "msauth://installProfile?url=https://mdm.example/p&requireASWebAuthenticationSession=true"
        #expect(try Enrolment.action(url) == Enrolment.session("https://mdm.example/p"))
        var state = Enrolment.state([("x-intune-authtoken", "T")])
        state.responder = try Origin(url: "https://mdm.example")
        #expect(
            try Enrolment.action(url, state)
                == Enrolment.session("https://mdm.example/p", [AdditionalHeader("X-Intune-AuthToken", "T")]))
        // Another page of the sign-in's hosts may have put a frame there.
        state.responder = try Origin(url: "https://login.example")
        #expect(try Enrolment.action(url, state) == Enrolment.session("https://mdm.example/p"))
    }

    @Test func theHeaderWithTheInstallURLComesBeforeTheParameter() throws {
        let state = Enrolment.state([("X-Install-Url", "https://mdm.example/header"), ("X-Intune-AuthToken", "T")])
        #expect(
            try Enrolment.action("msauth://installProfile?url=https://mdm.example/p", state)
                == Enrolment.session("https://mdm.example/header", [AdditionalHeader("X-Intune-AuthToken", "T")]))
        let foreign = Enrolment.state([("X-Install-Url", "https://evil.example/"), ("X-Intune-AuthToken", "T")])
        #expect(try Enrolment.action("msauth://installProfile", foreign).failure == .foreignPage)
    }

    @Test func aProfileThatLoadsInTheViewDoesNotGetTheToken() throws {
        let state = Enrolment.state([("X-Intune-AuthToken", "T")])
        #expect(
            try Enrolment.action("msauth://installProfile?url=https://mdm.example/p", state)
                == Enrolment.load("https://mdm.example/p"))
    }

    @Test func aHeaderThatIsThereTwiceDoesNotCount() throws {
        let state = Enrolment.state([
            ("X-Install-Url", "https://mdm.example/1"), ("x-install-url", "https://mdm.example/2"),
        ])
        #expect(try Enrolment.action("msauth://installProfile", state).failure == .malformed)
    }

    // MARK: Additions of the profile and the session

    @Test func theProfilesHeadersAndParametersGoToEnrolmentPages() throws {
        var rules = try Enrolment.rules()
        rules.headers = [AdditionalHeader("X-Device", "linux")]
        rules.parameters = [("platform", "linux desktop")]
        for host in ["enroll", "compliance"] {
            #expect(
                SpecialURLViewActionResolver.action(
                    for: "msauth://\(host)?cpurl=https://mdm.example/e", Enrolment.state(), rules)
                    == (try Enrolment.load(
                        "https://mdm.example/e?platform=linux+desktop", [AdditionalHeader("X-Device", "linux")])))
        }
    }

    @Test func theDevicesIdentifierGoesToEnrolmentPagesOnly() throws {
        var state = Enrolment.state()
        state.deviceIdentifier = "d 1"
        #expect(
            try Enrolment.action("msauth://enroll?intuneRedirectUrl=https://mdm.example/e", state)
                == Enrolment.load("https://mdm.example/e?in-app=true&webauthn=1&intuneDeviceId=d+1"))
        #expect(
            try Enrolment.action("msauth://enroll?intuneRedirectUrl=https://mdm.example/e&intuneDeviceId=x", state)
                == Enrolment.load("https://mdm.example/e?in-app=true&webauthn=1&intuneDeviceId=x"))
        #expect(
            try Enrolment.action("msauth://compliance?intuneRedirectUrl=https://mdm.example/c", state)
                == Enrolment.load("https://mdm.example/c"))
    }

    @Test func aBrokerRepeatsTheRequestAfterEnrolment() throws {
        var rules = try Enrolment.rules()
        rules.hasBroker = true
        for status in ["success", "Check_In_Timed_Out"] {
            let url = "msauth://in_app_enrollment_complete?status=\(status)&errorUrl=https://mdm.example/why"
            #expect(SpecialURLViewActionResolver.action(for: url, Enrolment.state(), rules) == .complete(url))
        }
    }

    // MARK: Browsers

    @Test(arguments: [
        ("browser://help.example/a?b=c", "https://help.example/a?b=c"),
        ("BROWSER://help.example", "https://help.example/"),
        ("browser://help.example:8443/", "https://help.example:8443/"),
    ])
    func anotherPageOpensInThePersonsBrowser(url: String, page: String) throws {
        #expect(try Enrolment.action(url) == .openExternalBrowser(page, keepsView: false))
    }

    @Test func aBrowserURLThatIsTheRedirectCompletes() throws {
        var rules = try Enrolment.rules()
        rules.redirect = try RedirectURI("https://app.example/callback")
        #expect(
            SpecialURLViewActionResolver.action(
                for: "browser://app.example/callback?code=1&state=S-1", Enrolment.state(), rules)
                == .complete("https://app.example/callback?code=1&state=S-1"))
    }

    @Test func aWalletIsAskedWhileTheViewStays() throws {
        let url = "openid-vc://?request_uri=https://wallet.example/r"
        #expect(try Enrolment.action(url) == .openExternalBrowser(url, keepsView: true))
    }

    @Test(arguments: [("AAAAAQ", true), ("AAAAAA", false), ("AAAAAg==", false), ("!", false)])
    func anotherBrowserIsOpenedWithTheCode(modes: String, isEphemeral: Bool) throws {
        let url =
            "com.example.app://auth/switch_browser?action_uri=https%3A%2F%2Flogin.example%2Fs%3Fa%3D1&code=C&state=S-1"
            + "&browser_modes=\(modes)"
        #expect(
            try Enrolment.action(url)
                == Enrolment.session(
                    "https://login.example/s?a=1&code=C&redirect_uri=com.example.app%3A%2F%2Fauth&state=S-1", [],
                    .unknown,
                    scheme: "com.example.app", isEphemeral: isEphemeral))
    }

    @Test func theViewResumesWithTheCodeInAHeader() throws {
        let url = "com.example.app://auth/switch_browser_resume?action_uri=https://login.example/r&code=C&state=S-1"
        #expect(
            try Enrolment.action(url)
                == Enrolment.load("https://login.example/r", [AdditionalHeader("Authorization", "Bearer C")]))
    }

    /// Any page could have made the way back up.
    @Test(arguments: ["", "&state=", "&state=other"])
    func theWayBackNamesTheSignIn(state: String) throws {
        let url = "com.example.app://auth/switch_browser_resume?action_uri=https://login.example/r&code=C\(state)"
        #expect(try Enrolment.action(url).failure == .malformed)
    }

    @Test(arguments: [
        ("action_uri=https://login.example/r", DeviceManagementError.Code.malformed),
        ("code=C", .malformed), ("", .malformed), ("action_uri=https://login.example/r&code=C&code=D", .malformed),
        ("action_uri=https://login.example/r&code=C&state=other", .malformed),
        ("action_uri=https://evil.example/r&code=C&state=S-1", .foreignPage),
        ("action_uri=http://login.example/r&code=C&state=S-1", .foreignPage),
    ])
    func aFaultySwitchOfBrowsersFails(query: String, code: DeviceManagementError.Code) throws {
        for segment in ["switch_browser", "switch_browser_resume"] {
            #expect(try Enrolment.action("com.example.app://auth/\(segment)?\(query)").failure == code, "\(query)")
        }
    }
}
