// SPDX-License-Identifier: Apache-2.0

import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.URL;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;

/** Fetch old|new URL [FILE]: prints the page, or the response to a POST, with HttpURLConnection or java.net.http. */
public class Fetch {
    public static void main(String[] arguments) throws Exception {
        Path file = arguments.length > 2 ? Path.of(arguments[2]) : null;
        if (arguments[0].equals("old")) old(arguments[1], file);
        else current(arguments[1], file);
    }

    private static void old(String url, Path file) throws Exception {
        HttpURLConnection connection = (HttpURLConnection) new URL(url).openConnection();
        if (file != null) {
            connection.setDoOutput(true);
            connection.setFixedLengthStreamingMode(Files.size(file));
            Files.copy(file, connection.getOutputStream());
        }
        try (InputStream body = connection.getInputStream()) {
            body.transferTo(System.out);
        }
    }

    private static void current(String url, Path file) throws Exception {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url));
        if (file != null) request.POST(HttpRequest.BodyPublishers.ofFile(file));
        HttpClient client = HttpClient.newBuilder().followRedirects(HttpClient.Redirect.NORMAL).build();
        HttpResponse<String> response = client.send(request.build(), HttpResponse.BodyHandlers.ofString());
        System.out.print(response.body());
        if (response.statusCode() != 200) System.exit(1);
    }
}
