package org.apache.spark.executor.bellows

import java.io.{BufferedReader, InputStreamReader}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.Base64

import org.apache.spark.internal.Logging
import org.apache.spark.scheduler.bellows.Json

/**
 * The program of an executor's JVM: it serves one application of Spark after another, as its launcher orders on the
 * standard input, an object of JSON in each line. The launcher registers with the pool and keeps the lease, so this JVM
 * may collect garbage for long. The JVM ends with its standard input.
 */
private[bellows] object WarmExecutor extends Logging {
  def main(args: Array[String]): Unit = {
    val reports = Reports.open()
    Training.run()
    val attachments = new Attachments(reports, sys.env.getOrElse("BELLOWS_CORES", "1").toInt)
    val thread = new Thread(() => attachments.run(), "bellows-attachments")
    thread.setDaemon(true)
    thread.start()
    reports.ready()
    try obey(attachments)
    catch { case e: Exception => logError("An order of the launcher cannot be read", e) }
    end()
  }

  /** Reads orders until they end. */
  private def obey(attachments: Attachments): Unit = {
    val in = new BufferedReader(new InputStreamReader(System.in, UTF_8))
    var line = in.readLine()
    while (line != null) {
      val order = Json.parse(line)
      order.path("do").asText match {
        case "attach" =>
          attachments.attach(order.path("attachment").asLong, order.path("key").asText, order.path("name").asText,
            Base64.getDecoder.decode(order.path("payload").asText), order.path("left").asLong)
        case "park" => attachments.park()
        case "forget" => attachments.forget(order.path("key").asText)
        case "end" => return
        case other => logWarning(s"Unknown order of the launcher: $other")
      }
      line = in.readLine()
    }
  }

  /** Ends the JVM. The hooks of Spark remove files; they get some seconds. */
  private def end(): Unit = {
    val watchdog = new Thread(() => {
      Thread.sleep(EndMillis)
      Runtime.getRuntime.halt(0)
    }, "bellows-end")
    watchdog.setDaemon(true)
    watchdog.start()
    System.exit(0)
  }

  private val EndMillis = 5000L
}
